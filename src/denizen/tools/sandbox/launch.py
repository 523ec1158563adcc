"""Runs a command, and when it ends, ends all that it started; with grants, confined by Landlock and seccomp.

A program of its own, of the standard library alone so that it starts quickly:

    python -I -S launch.py OPTIONS… -- COMMAND…

OPTIONS are pieces of the JSON of `Options`. With grants, the command gets a home and a folder for temporary files of
its own; links in that home lead to what it may read of the real one.

The launcher adopts every orphan of the command (PR_SET_CHILD_SUBREAPER), so none escapes by leaving its group, its
session or its parent, and ends them when the command is over, on SIGTERM, and when its own parent dies. On SIGTERM its
process group gets one, too, and the command has a second to end by itself. Its exit status is the command's, 128 + n
after signal n, 126 where the command couldn't be confined or run.
"""

# pathlib takes its time to import
# ruff: noqa: PTH102, PTH103, PTH116, PTH120, PTH123, PTH208, PTH211

import contextlib
import ctypes
import errno
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
READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, read a file, list a folder
OF_FILES = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15  # rights that a file can have
ALL = (1 << 16) - 1
DEVICE_CONTROL = 1 << 15  # since ABI 5
SCOPES = 1 << 0 | 1 << 1  # abstract sockets and signals stay inside, since ABI 6
LEAST_ABI = 3  # before it, any file could be truncated

# by architecture: its number for audit, then the system calls socket, add_key, request_key, keyctl
CALLS = {"x86_64": (0xC000003E, 41, 248, 249, 250), "aarch64": (0xC00000B7, 198, 217, 218, 219)}
IO_URING_SETUP = 425  # what it does isn't seen by seccomp
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
ALLOWED, KILLED, REFUSED = 0x7FFF0000, 0x80000000, 0x00050000
AF_UNIX, AF_NET = 1, (2, 10, 16)  # IPv4, IPv6, and the kernel's tables of them

# by architecture: the system calls shmget, msgget, semget
SYSTEM_V = {"x86_64": (29, 68, 64), "aarch64": (194, 186, 190)}
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x00020000, 0x08000000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
TERMINATING_LOOKS = 50

libc = ctypes.CDLL(None, use_errno=True)


class Options(NamedTuple):
    """How the command is confined.

    A grant is an access (`read` or `write`), a place, and what in it is excepted. With `protected` places the command
    has mounts and System V memory of its own, and those places are read-only in it; with None it has no namespaces, and
    System V memory is refused to a confined command. `bwrap`: the command is one, and gets the filter of system calls.
    """

    grants: Sequence[tuple[str, str, Sequence[str]]] = ()
    links: Sequence[tuple[str, str]] = ()
    network: bool = False
    protected: Sequence[str] | None = None
    bwrap: bool = False


def main(argv: Sequence[str]) -> int:
    """Run the command to its end; its exit status."""
    end = argv.index("--")
    options, command = Options(**json.loads("".join(argv[1:end]))), [*argv[end + 1 :]]
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    with _scratch(options.links) if options.grants else contextlib.nullcontext("") as scratch:
        child = os.fork()
        if child == 0:
            _become(command, options, scratch)
        try:
            while True:
                pid, status = os.wait()
                if pid == child:
                    code = os.waitstatus_to_exitcode(status)
                    return code if code >= 0 else 128 - code
        except SystemExit:
            _terminate(child)
            raise
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            _end_all()


def abi() -> int:
    """The version of Landlock that this kernel has; 0: none."""
    return max(libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1)), 0)


def _terminate(child: int) -> None:
    """Let the command end by itself, in a second at most."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGTERM)
    else:
        os.kill(child, signal.SIGTERM)
    with contextlib.suppress(ChildProcessError):
        for _ in range(TERMINATING_LOOKS):
            if os.waitpid(child, os.WNOHANG)[0]:
                break
            time.sleep(1 / TERMINATING_LOOKS)


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


def _become(command: list[str], options: Options, scratch: str) -> NoReturn:
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        if options.grants:
            os.environ["HOME"] = scratch
            os.environ["TMPDIR"] = f"{scratch}/tmp"  # noqa: S108
            if options.protected is not None:
                _enter_namespaces()
                for place in options.protected:  # mounted over itself, so it can't be renamed or removed either
                    _mount(place, place, MS_BIND | MS_REC)
                    read_only = struct.pack("QQQQ", MOUNT_ATTR_RDONLY, 0, 0, 0)
                    at, flags, length = ctypes.c_int(AT_FDCWD), ctypes.c_uint(AT_RECURSIVE), len(read_only)
                    _called(MOUNT_SETATTR, at, os.fsencode(place), flags, read_only, ctypes.c_size_t(length))
            _confine(options, scratch)
        if options.bwrap:
            place = os.memfd_create("filter")
            os.write(place, _filter([AF_UNIX, *AF_NET], own_memory=True))
            os.lseek(place, 0, os.SEEK_SET)
            os.set_inheritable(place, True)
            command[1:1] = ["--seccomp", str(place)]
        os.execvp(command[0], command)  # noqa: S606
    except BaseException as error:  # noqa: BLE001 (nothing of the copied process may run on)
        os.write(2, f"{command[0] if command else 'the command'} can't be run: {error}\n".encode(errors="replace"))
    os._exit(126)


def _enter_namespaces() -> None:
    """Mounts and System V memory of its own: as root at once, else as the root of a user namespace."""
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWNS | CLONE_NEWIPC):
        if libc.unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUSER):
            raise OSError(ctypes.get_errno(), "the kernel refuses namespaces")
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    _mount(None, "/", MS_REC | MS_PRIVATE)


def _mount(source: str | None, target: str, flags: int) -> None:
    if libc.mount(os.fsencode(source) if source else None, os.fsencode(target), None, ctypes.c_ulong(flags), None):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), target)


def _confine(options: Options, scratch: str) -> None:
    version = abi()
    if version < LEAST_ABI:
        raise OSError(errno.ENOSYS, f"the kernel's Landlock is too old (ABI {version})")
    handled = ALL if version >= 5 else ALL & ~DEVICE_CONTROL
    attributes = struct.pack("QQQ", handled, 0, SCOPES if version >= 6 else 0)
    rules = _called(CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    for access, path, without in (*options.grants, ("write", scratch, ())):
        rights = READ if access == "read" else handled
        for inside in _beneath(path, without):
            try:  # of a link the link, not where it leads
                place = os.open(inside, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:
                continue  # gone, or not for this user
            try:
                folder = os.stat(place).st_mode & 0o170000 == 0o040000
                attributes = struct.pack("=Qi", rights if folder else rights & OF_FILES, place)
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
    filtering = _filter(AF_NET if options.network else [], own_memory=options.protected is not None)
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


def _filter(families: Sequence[int], *, own_memory: bool) -> bytes:
    """Refuses sockets but of those families, key rings, ways around this; System V memory unless it is its own."""
    architecture, socket, *refused = CALLS[os.uname().machine]
    refused += [] if own_memory else SYSTEM_V[os.uname().machine]
    steps = [
        *((LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, architecture), (RETURN, 0, 0, KILLED), (LOAD, 0, 0, NUMBER)),
        *((AT_LEAST, 0, 1, 1 << 30), (RETURN, 0, 0, REFUSED | errno.ENOSYS)),  # the x32 variants of calls
    ]
    for call in (IO_URING_SETUP, *refused):
        steps += [(EQUAL, 0, 1, call), (RETURN, 0, 0, REFUSED | errno.EPERM)]
    steps += [(EQUAL, 1, 0, socket), (RETURN, 0, 0, ALLOWED), (LOAD, 0, 0, FIRST_ARGUMENT)]
    for family in families:
        steps += [(EQUAL, 0, 1, family), (RETURN, 0, 0, ALLOWED)]
    steps.append((RETURN, 0, 0, REFUSED | errno.EACCES))
    return b"".join(struct.pack("HBBI", *step) for step in steps)


def _called(number: int, *args: Any) -> int:
    result = libc.syscall(number, *args)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv))
