"""Runs a command, and when it ends, ends all that it started; with grants, confined by Landlock and seccomp.

A program of its own, of the standard library alone so that it starts quickly:

    python -I -S launch.py OPTIONS… -- COMMAND…

OPTIONS are pieces of the JSON of `LaunchOptions`. With grants, the command gets its own home and folder for temporary
files; links in that home lead to what it may read of the real one.

The launcher adopts every orphan of the command (PR_SET_CHILD_SUBREAPER), so none escapes by leaving its group, its
session or its parent, and ends them when the command is over, on SIGTERM, and when its own parent dies. On SIGTERM its
process group gets one, too, and the command has a second to end by itself. Until all have ended, the launcher locks
`look`, so that nobody looks too early at what they did. Its exit status is the command's, 128 + n after signal n, 126
where the command couldn't be confined or run.
"""

# pathlib takes its time to import
# ruff: noqa: PTH101, PTH102, PTH103, PTH109, PTH112, PTH116, PTH120, PTH123, PTH208, PTH211

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import signal
import struct
import sys
import time
import warnings  # noqa: F401 (os.execvp imports it: too late when the library can't be read any more)
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 22, 24, 36, 38
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same on every architecture
READ_RIGHTS = 1 << 0 | 1 << 2 | 1 << 3  # execute, read a file, list a folder
FILE_RIGHTS = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15  # rights that a file can have
ALL_RIGHTS = (1 << 16) - 1
DEVICE_CONTROL = 1 << 15  # since ABI 5
SCOPES = 1 << 0 | 1 << 1  # abstract sockets and signals stay inside, since ABI 6
MIN_ABI = 3  # before it, any file could be truncated

LOAD, EQUAL, AT_LEAST, HAS_ANY, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16
ALLOWED, KILLED, REFUSED = 0x7FFF0000, 0x80000000, 0x00050000
AF_UNIX, AF_NET = 1, (2, 10, 16)  # IPv4, IPv6, and the kernel's tables of them
SETUID, SETGID = 0o4000, 0o2000
MAKES_FILE = os.O_CREAT | 0o20000000  # the other: O_TMPFILE, without what it has of O_DIRECTORY


class Calls(NamedTuple):
    """The number of an architecture, and of its system calls."""

    architecture: int
    socket: int
    key_rings: Sequence[int]
    system_v: Sequence[int]
    limits: int
    scheduling: Sequence[int]
    affinity: int
    priorities: Sequence[tuple[int, int]]
    """Those that set one, with the word for all processes of a user."""
    modes: Sequence[tuple[int, int]]
    """Those that set a mode, with the place of that argument."""
    opening: Sequence[tuple[int, int]]
    """Those that may make a file, with the place of their flags; the mode is next."""


CALLS = {
    "x86_64": Calls(
        architecture=0xC000003E,
        socket=41,
        key_rings=(248, 249, 250),
        system_v=(29, 68, 64),
        limits=302,
        scheduling=(142, 144, 314),
        affinity=203,
        priorities=((141, 2), (251, 3)),
        modes=((90, 1), (91, 1), (268, 2), (452, 2), (85, 1), (133, 1), (259, 2)),
        opening=((2, 1), (257, 2)),
    ),
    "aarch64": Calls(
        architecture=0xC00000B7,
        socket=198,
        key_rings=(217, 218, 219),
        system_v=(194, 186, 190),
        limits=261,
        scheduling=(118, 119, 274),
        affinity=122,
        priorities=((140, 2), (30, 3)),
        modes=((52, 1), (53, 2), (452, 2), (33, 2)),
        opening=((56, 2),),
    ),
}
IO_URING_SETUP, OPENAT2 = 425, 437  # what these do isn't seen by seccomp

CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID = 0x00020000, 0x08000000, 0x10000000, 0x20000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1 << 1, 1 << 2, 1 << 3, 1 << 12, 1 << 14, 1 << 18
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 428, 429, 442, -100, 0x8000, 1
OPEN_TREE_CLONE, MOVE_MOUNT_F_EMPTY_PATH = 1, 4
SHARED_MEMORY = "/dev/shm"  # noqa: S108 (mounted there)
TERMINATION_POLLS = 50
CLOCK_TICK_S = 0.1  # by which the times of files may be late

libc = ctypes.CDLL(None, use_errno=True)


class LaunchOptions(NamedTuple):
    """How the command is confined.

    A grant is an access (`read` or `write`), a place, and what in it is excepted. With `protected` places the command
    has mounts and System V memory of its own, and all is read-only in it but what is granted without these places; with
    None it has no namespaces, and System V memory is refused to a confined command. With `own_processes` it sees no
    others. `bwrap`: the command is one, and gets the filter of system calls. `look`: the note of the
    check that is pending after it. `setgid`: a folder where it may set setgid bits, which regular files lose when it
    is over.
    """

    grants: Sequence[tuple[str, str, Sequence[str]]] = ()
    links: Sequence[tuple[str, str]] = ()
    network: bool = False
    protected: Sequence[str] | None = None
    own_processes: bool = False
    bwrap: bool = False
    look: str = ""
    setgid: str = ""

    @property
    def refused_modes(self) -> int:
        """The bits that it can't give to files."""
        return SETUID if self.setgid else SETUID | SETGID


def main(argv: Sequence[str]) -> int:
    """Run the command to its end; its exit status."""
    end = argv.index("--")
    options, command = LaunchOptions(**json.loads("".join(argv[1:end]))), [*argv[end + 1 :]]
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    if options.look and not _claim_note(options.look):
        return 126
    starter, began = os.getppid(), time.time()
    with _scratch(options.links) if options.grants else contextlib.nullcontext("") as scratch:
        child = os.fork()
        if child == 0:
            _run_confined(command, options, scratch, starter)
        try:
            return _wait_for(child)
        except SystemExit:
            _terminate(child)
            raise
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            _end_all()
            if options.setgid:
                _take_setgid(options.setgid, began)


def abi() -> int:
    """The version of Landlock that this kernel has; 0: none."""
    return max(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1)), 0)


def _terminate(child: int) -> None:
    """Ask the command to end, and give it a second."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGTERM)
    else:
        os.kill(child, signal.SIGTERM)
    with contextlib.suppress(ChildProcessError):
        for _ in range(TERMINATION_POLLS):
            if os.waitpid(child, os.WNOHANG)[0]:
                break
            time.sleep(1 / TERMINATION_POLLS)


def _claim_note(look: str) -> bool:
    """Lock the note while this process lives, and say whether its owner still does."""
    try:
        note, owner = (os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in (look, look.replace(".json", ".lock")))
    except FileNotFoundError:
        return False
    fcntl.flock(note, fcntl.LOCK_SH)
    try:
        fcntl.flock(owner, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _wait_for(child: int) -> int:
    """Reap children until this one has ended; its exit status."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _go_on_in_child() -> None:
    """Return in a child alone; this process waits for it, and ends as it does."""
    if child := os.fork():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # sent to the whole group: it's the command's to end
        os._exit(_wait_for(child))
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _end_all() -> None:
    """Kill all children until there are none; those of a killed one become ours and are next."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, os.WNOHANG)
            for name in filter(str.isdigit, os.listdir("/proc")):
                parent = 0
                with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
                if parent == os.getpid():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(name), signal.SIGKILL)
            os.wait()


def _take_setgid(workspace: str, since: float) -> None:
    """Take the bit from regular files that were made or changed since then."""
    for folder, _, names in os.walk(workspace):
        for path in (f"{folder}/{name}" for name in names):
            with contextlib.suppress(OSError):
                found = os.lstat(path)
                is_file = found.st_mode & 0o170000 == 0o100000
                if is_file and found.st_mode & SETGID and found.st_ctime > since - CLOCK_TICK_S:
                    os.chmod(path, found.st_mode & 0o5777)


@contextlib.contextmanager
def _scratch(links: Sequence[tuple[str, str]]) -> Generator[str]:
    """A folder that is the home of a confined command, and holds its temporary files."""
    import shutil

    folder = f"/tmp/denizen-{os.urandom(8).hex()}"  # noqa: S108 (a name that nobody can guess)
    os.mkdir(folder, 0o700)
    try:
        os.mkdir(f"{folder}/tmp")  # noqa: S108
        for name, target in links:
            os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
            os.symlink(target, f"{folder}/{name}")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # the command may have made it impossible


def _run_confined(command: list[str], options: LaunchOptions, scratch: str, starter: int) -> NoReturn:
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if options.grants:
            os.environ["HOME"] = scratch
            os.environ["TMPDIR"] = f"{scratch}/tmp"  # noqa: S108
            others = [] if options.own_processes else [*map(int, os.listdir(f"/proc/{starter}/task"))]
            if options.protected is not None:
                _enter_namespaces(CLONE_NEWPID if options.own_processes else 0)
                if options.own_processes:  # the first process of the namespace, which adopts the orphans in it
                    _go_on_in_child()
                    _mount("proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, kind="proc")
                granted = [place for access, place, _ in options.grants if access == "write" and os.path.isdir(place)]
                if SHARED_MEMORY in granted:  # one of its own
                    _mount("tmpfs", SHARED_MEMORY, MS_NOSUID | MS_NODEV, kind="tmpfs")
                _mount_read_only([*granted, scratch], options.protected)
            _confine(options, scratch, others)
            if options.own_processes:
                _go_on_in_child()
        if options.bwrap:
            place = os.memfd_create("filter")
            os.write(place, _filter([AF_UNIX, *AF_NET], own_memory=True, modes=options.refused_modes))
            os.lseek(place, 0, os.SEEK_SET)
            os.set_inheritable(place, True)
            command[1:1] = ["--seccomp", str(place)]
        os.execvp(command[0], command)  # noqa: S606
    except BaseException as error:  # noqa: BLE001 (nothing of the copied process may run on)
        os.write(2, f"{command[0] if command else 'the command'} can't be run: {error}\n".encode(errors="replace"))
    os._exit(126)


def _enter_namespaces(kinds: int) -> None:
    """Mounts and System V memory of its own, and `kinds`: as root at once, else as the root of a user namespace."""
    user, group = os.geteuid(), os.getegid()
    kinds |= CLONE_NEWNS | CLONE_NEWIPC
    if libc.unshare(kinds):
        if libc.unshare(kinds | CLONE_NEWUSER):
            raise OSError(ctypes.get_errno(), "the kernel refuses namespaces")
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    _mount(None, "/", MS_REC | MS_PRIVATE)


def _mount_read_only(writable: Sequence[str], protected: Sequence[str]) -> None:
    """Make all read-only, even modes and times, except what is `writable` without the `protected` places in it."""
    at = ctypes.c_int(AT_FDCWD)
    clone = ctypes.c_uint(OPEN_TREE_CLONE | AT_RECURSIVE | os.O_CLOEXEC)
    trees = [(place, _called(OPEN_TREE, at, os.fsencode(place), clone)) for place in writable]
    _make_read_only("/")
    for place, tree in trees:
        flags = ctypes.c_uint(MOVE_MOUNT_F_EMPTY_PATH)
        _called(MOVE_MOUNT, ctypes.c_int(tree), b"", at, os.fsencode(place), flags)
        os.close(tree)
    for place in protected:  # mounted over itself, so it can't be renamed or removed either
        _mount(place, place, MS_BIND | MS_REC)
        _make_read_only(place)
    os.chdir(os.getcwd())  # it was below what is mounted there now


def _make_read_only(place: str) -> None:
    attributes = struct.pack("QQQQ", MOUNT_ATTR_RDONLY, 0, 0, 0)
    at, flags, length = ctypes.c_int(AT_FDCWD), ctypes.c_uint(AT_RECURSIVE), ctypes.c_size_t(len(attributes))
    _called(MOUNT_SETATTR, at, os.fsencode(place), flags, attributes, length)


def _mount(source: str | None, target: str, flags: int, kind: str = "") -> None:
    texts = [os.fsencode(text) if text else None for text in (source, target, kind)]
    if libc.mount(*texts, ctypes.c_ulong(flags), None):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), target)


def _confine(options: LaunchOptions, scratch: str, others: Sequence[int]) -> None:
    version = abi()
    if version < MIN_ABI:
        raise OSError(errno.ENOSYS, f"the kernel's Landlock is too old (ABI {version})")
    handled = ALL_RIGHTS if version >= 5 else ALL_RIGHTS & ~DEVICE_CONTROL
    attributes = struct.pack("QQQ", handled, 0, SCOPES if version >= 6 else 0)
    rules = _called(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    for access, path, without in (*options.grants, ("write", scratch, ())):
        rights = READ_RIGHTS if access == "read" else handled
        for inside in _beneath(path, without):
            try:  # of a link the link, not where it leads
                place = os.open(inside, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:
                continue  # gone, or not for this user
            try:
                folder = os.stat(place).st_mode & 0o170000 == 0o040000
                attributes = struct.pack("=Qi", rights if folder else rights & FILE_RIGHTS, place)
                _called(ADD_RULE, rules, ctypes.c_int(1), attributes, ctypes.c_uint32(0))
            finally:
                os.close(place)
    capability = 0  # root without its powers; for everybody else there is nothing to drop
    while not libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
        capability += 1
    libc.capset(struct.pack("Ii", 0x20080522, 0), bytes(24))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")
    _called(RESTRICT_SELF, rules, ctypes.c_uint32(0))
    families = AF_NET if options.network else []
    filtering = _filter(families, own_memory=options.protected is not None, modes=options.refused_modes, others=others)
    program = _Program(len(filtering) // 8, filtering)
    if libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp was refused")


def _beneath(path: str, without: Sequence[str]) -> Iterator[str]:
    """`path`, or the places in it that together are all of it without `without` (a grant covers everything beneath)."""
    inside = [other for other in without if f"{other}/".startswith(f"{path.rstrip('/')}/")]
    if not inside:
        yield path
    elif path not in inside:
        with contextlib.suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                yield from _beneath(entry.path, inside)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def _filter(families: Sequence[int], *, own_memory: bool, modes: int, others: Sequence[int] = ()) -> bytes:
    """Refuses sockets but of those families, key rings, the bits `modes` of files' modes, and ways around this.

    Unless it is its own, also System V memory; and with `others`, the processes that start it, limits for any process
    but the caller. A thread names itself by its number where it chooses its processors, so there only they are refused.
    """
    calls = CALLS[os.uname().machine]
    steps = [
        *((LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, calls.architecture), (RETURN, 0, 0, KILLED), (LOAD, 0, 0, NUMBER)),
        *((AT_LEAST, 0, 1, 1 << 30), (RETURN, 0, 0, REFUSED | errno.ENOSYS)),  # the x32 variants of calls
        *_refuse(OPENAT2, error=errno.ENOSYS),
    ]
    for call in (IO_URING_SETUP, *calls.key_rings, *(() if own_memory else calls.system_v)):
        steps += _refuse(call)
    for call, mode in calls.modes:
        steps += _refuse(call, (mode, HAS_ANY, modes, True))
    for call, flags in calls.opening:
        steps += _refuse(call, (flags, HAS_ANY, MAKES_FILE, True), (flags + 1, HAS_ANY, modes, True))
    if others:
        for call in (calls.limits, *calls.scheduling):
            steps += _refuse(call, (0, EQUAL, 0, False))
        for call, all_of_user in calls.priorities:
            steps += _refuse(call, (1, EQUAL, 0, False)) + _refuse(call, (0, EQUAL, all_of_user, True))
        for number in others:
            steps += _refuse(calls.affinity, (0, EQUAL, number, True))
    steps += [(EQUAL, 1, 0, calls.socket), (RETURN, 0, 0, ALLOWED), (LOAD, 0, 0, ARGUMENTS)]
    for family in families:
        steps += [(EQUAL, 0, 1, family), (RETURN, 0, 0, ALLOWED)]
    steps.append((RETURN, 0, 0, REFUSED | errno.EACCES))
    return b"".join(struct.pack("HBBI", *step) for step in steps)


_Step = tuple[int, int, int, int]


def _refuse(call: int, *where: tuple[int, int, int, bool], error: int = errno.EPERM) -> list[_Step]:
    """Steps that refuse a call where comparing each of these arguments (its place, how, with what) has that outcome."""
    steps: list[_Step] = [(RETURN, 0, 0, REFUSED | error)]
    for place, how, value, outcome in reversed(where):
        met, unmet = (0, len(steps)) if outcome else (len(steps), 0)
        steps = [(LOAD, 0, 0, ARGUMENTS + 8 * place), (how, met, unmet, value), *steps]
    if where:
        steps.append((LOAD, 0, 0, NUMBER))
    return [(EQUAL, 0, len(steps), call), *steps]


def _called(number: int, *args: Any) -> int:
    result = libc.syscall(number, *args)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv))
