"""The sandboxes: bubblewrap, Landlock with namespaces or alone, and none."""

import json
import os
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from denizen.config.home import user_folder
from denizen.config.pattern import pattern
from denizen.config.settings import SandboxSettings
from denizen.errors import DenizenError
from denizen.ports import Sandbox, Sandboxed
from denizen.tools.sandbox.environment import CommandEnvironment
from denizen.tools.sandbox.layout import Layout, is_in_any, layout
from denizen.trusted.autorun import Identity
from denizen.trusted.guard import Guard
from denizen.trusted.pending_checks import PendingCheck, run_pending_checks
from denizen.trusted.programs import find_program, trusted_environ
from denizen.trusted.session_files import SessionFiles

_LAUNCHER = Path(__file__).with_name("launch.py")
_MAX_ARGUMENT_CHARS = 100_000  # characters of one argument of a program; Linux takes 131,071
_TRIAL_TIMEOUT_S = 10.0  # how long a sandbox may take to show that it works
_NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
_EMPTY_FOLDER = ("--tmpfs",)
_EMPTY_FILE = ("--ro-bind", "/dev/null")
_SOCKET_LINE = r"[\da-f]+: [\dA-F]{8} [\dA-F]{8} [\dA-F]{8} [\dA-F]{4} [\dA-F]{2} +\d+"
_SOCKET = pattern(rf"^{_SOCKET_LINE} (/.*?)(?=\n{_SOCKET_LINE}|\n?\Z)", re.MULTILINE | re.DOTALL)
"""The path of one in /proc/net/unix; a name may hold line breaks."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_SET_LIMITS = 'ulimit -d "$1"; [ "$2" = 0 ] || ulimit -u "$2" 2>/dev/null || ulimit -p "$2"; shift 2; exec "$@"'
"""For any POSIX shell: dash calls the number of processes `-p`."""
_WRITABLE = (
    "Commands can write only in the workspace, except what runs by itself there (existing .git, .envrc, "
    ".vscode/tasks.json, Denizen's configuration, skills), and in "
)
_LANDLOCK_LIMITS = (
    "of the home they can read only toolchains; sockets are refused unless the configuration allows the network; "
    "their background processes end with them."
)
_SHARED_PROCESSES = (
    "They see other processes, and before Linux 6.12 can end them; limits and priorities can be set only for the "
    "very process or thread that calls for it, by the number 0."
)


class Unconfined:
    """No sandbox: only the environment is scrubbed, and the policy asks before a command runs."""

    name = "none"
    promises = "Nothing is confined: commands run with all of your rights, but without keys in their environment."
    confines = False
    advice = "Install bubblewrap (bwrap); until then you are asked about commands."

    def __init__(
        self, settings: SandboxSettings, environ: Mapping[str, str], secrets: Mapping[str, str] | None = None
    ) -> None:
        self._passed = CommandEnvironment(settings, environ, secrets or {})

    def wrap(
        self, argv: Sequence[str], *, workspace: Path, network: bool = False, read_only: bool = False
    ) -> Sandboxed:
        """The command, with no more than supervision; the other arguments change nothing."""
        return Sandboxed(supervised(argv), self._passed.variables, notice=self._passed.notice)


class _Confined:
    """The common part of sandboxes that confine. `home` is Denizen's own, which commands never see.

    Programs that make the sandbox are never those of `workspace`, even where a command runs elsewhere.
    """

    confines = True
    confined_by_launcher = True
    advice = ""

    def __init__(
        self,
        settings: SandboxSettings,
        environ: Mapping[str, str],
        home: Path,
        secrets: Mapping[str, str] | None = None,
        workspace: Path | None = None,
        *,
        commands: Sequence[tuple[str, str]] = (),
    ) -> None:
        self._settings = settings
        self._commands = commands
        self._environ = environ
        self._passed = CommandEnvironment(settings, environ, secrets or {})
        self._home = home
        self._workspace = workspace or Path.cwd()
        self._made: set[Identity] = set()

    def wrap(
        self, argv: Sequence[str], *, workspace: Path, network: bool = False, read_only: bool = False
    ) -> Sandboxed:
        """The confined command; with `read_only`, it sees only programs and the workspace, and can't write there.

        First of all looks at what commands left whose Denizen was killed. Raises ToolRefused for a workspace that can't
        be set apart from the home.
        """
        left = run_pending_checks(self._home, trusted_environ(self._environ, self._workspace))
        places = layout(workspace, self._settings, self._environ, self._home, network=network, read_only=read_only)
        trusted = trusted_environ(self._environ, self._workspace, places.workspace)
        guard = Guard(places.workspace, self._made, trusted, self._commands)
        pending = None if read_only else PendingCheck(self._home, guard)
        setgid = places.writable and places.workspace.stat().st_mode & stat.S_ISGID
        confined, options, variables = self._confine(argv, places, guard.protected, network=network)
        return Sandboxed(
            supervised(
                confined,
                {
                    **options,
                    "look": str(pending.note) if pending else "",
                    "setgid": str(places.workspace) if setgid else "",
                },
            ),
            {**self._passed.variables, **variables},
            notice=" ".join(filter(None, (left, self.advice, self._passed.notice))),
            held=[str(place.relative_to(places.workspace)) for place in guard.protected],
            afterwards=pending.run if pending else None,
        )

    def _confine(
        self, argv: Sequence[str], places: Layout, protected: Sequence[Path], *, network: bool
    ) -> tuple[Sequence[str], Mapping[str, Any], Mapping[str, str]]:
        """The confined command, options for `launch.py`, and the variables that it needs."""
        raise NotImplementedError

    def _limited(self, argv: Sequence[str], *, count: bool = True) -> list[str]:
        """The command, with a limit on the memory of each process and, with `count`, on the number of processes.

        The kernel counts processes by user namespace, and doesn't limit root's.
        """
        memory = self._settings.memory_mb * 1024 or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 1024
        return ["/bin/sh", "-c", _SET_LIMITS, "sh", str(memory), str(self._settings.processes if count else 0), *argv]


class Bubblewrap(_Confined):
    """A mount namespace in which only the workspace and a private /tmp can be written, without network."""

    name = "bubblewrap"
    confined_by_launcher = False
    promises = (
        f"{_WRITABLE}a /tmp of their own; of the home they see only toolchains, of other processes nothing; the "
        "network is off unless the configuration allows it; their background processes end with them."
    )

    def _confine(
        self, argv: Sequence[str], places: Layout, protected: Sequence[Path], *, network: bool
    ) -> tuple[Sequence[str], Mapping[str, Any], Mapping[str, str]]:
        mounts: dict[Path, tuple[str, ...]] = {Path("/"): ("--ro-bind", "/")}
        # where services of this machine are: a socket takes what is written to it in a read-only file system too
        named = map(Path, _SOCKET.findall(Path("/proc/net/unix").read_text(errors="surrogateescape")))
        sockets = [name.resolve() for name in named if name.is_socket()]
        apart = (*places.hidden, places.workspace)
        mounts |= {socket: _EMPTY_FILE for socket in sockets if not is_in_any(socket, apart)}
        mounts |= dict.fromkeys(places.hidden, _EMPTY_FOLDER)
        mounts |= {Path("/dev"): ("--dev",), Path("/proc"): ("--proc",)}
        mounts[Path("/proc/sys")] = ("--ro-bind-try", "/proc/sys")  # root may write the kernel's settings in any case
        mounts |= {place: ("--ro-bind", str(place.resolve())) for place in places.shown}
        mounts |= {place: _EMPTY_FOLDER if place.is_dir() else _EMPTY_FILE for place in places.secret}
        mounts[places.workspace] = ("--bind" if places.writable else "--ro-bind", str(places.workspace))
        mounts |= {place: ("--ro-bind", str(place)) for place in protected}
        inner_last = sorted(mounts, key=lambda place: len(place.parts))
        bubble = [
            find_program("bwrap", self._environ, self._workspace, places.workspace, otherwise="/usr/bin/bwrap"),
            *_NAMESPACES,
            *([] if network else ["--unshare-net"]),
            *[word for place in inner_last for word in (*mounts[place], str(place))],
            *("--chdir", str(places.workspace), "--", *self._limited(argv)),
        ]
        return bubble, {"bwrap": True}, {"TMPDIR": "/tmp"}  # noqa: S108 (a private one)


class Landlock(_Confined):
    """Only the workspace and a private folder can be written; nothing of the home is read, and no socket opened.

    In a mount namespace of its own, where what is protected in the workspace is read-only.
    """

    name = "Landlock"
    promises = f"{_WRITABLE}$TMPDIR; {_LANDLOCK_LIMITS}"
    namespaces = own_processes = True

    def _confine(
        self, argv: Sequence[str], places: Layout, protected: Sequence[Path], *, network: bool
    ) -> tuple[Sequence[str], Mapping[str, Any], Mapping[str, str]]:
        unseen = (*places.hidden, *places.secret)
        grants = [_grant("read", Path("/"), (*unseen, Path("/dev")))]
        grants += [_grant("read", place.resolve(), unseen) for place in (*places.shown, places.workspace)]
        if places.writable:
            grants.append(_grant("write", places.workspace, (*unseen, *(() if self.namespaces else protected))))
            grants += [("write", "/dev/shm", ())] if self.namespaces else []  # noqa: S108 (a private one)
        user = user_folder(self._environ).resolve()
        options = {
            "grants": [*grants, *(("write", device, ()) for device in _DEVICES)],
            # the command's own home has links to what is shown of the real one
            "links": [
                (str(place.relative_to(user)), str(place.resolve()))
                for place in places.shown
                if place.is_relative_to(user)
            ],
            "network": network,
            "protected": [*map(str, protected)] if self.namespaces else None,
            "own_processes": self.own_processes,
        }
        path = self._passed.variables["PATH"].split(os.pathsep)
        # a shell finds programs also in a home that it can't read, and then fails to run them
        homes = [user, user_folder(self._environ)]
        seen = [name for name in path if not (is_in_any(Path(name), homes) and places.hides(Path(name)))]
        return self._limited(argv, count=self.namespaces), options, {"PATH": os.pathsep.join(seen)}


class LandlockSharingProcesses(Landlock):
    """With all namespaces except that of processes, for containers that don't allow a new /proc."""

    name = "Landlock without a process namespace"
    promises = f"{_WRITABLE}$TMPDIR; {_LANDLOCK_LIMITS} {_SHARED_PROCESSES}"
    own_processes = False


class LandlockAlone(Landlock):
    """Without namespaces, for systems whose kernel or container refuses them.

    Landlock grants whole folders: in one that holds something protected, nothing can be made, renamed or deleted.
    """

    name = "Landlock without namespaces"
    promises = (
        f"{_WRITABLE}$TMPDIR; in the folders that hold those, such as the workspace's root, files can be changed but "
        f"none made, renamed or deleted; {_LANDLOCK_LIMITS} {_SHARED_PROCESSES} Permissions and times of other files "
        "can still be changed."
    )
    advice = (
        "Commands can't make, rename or delete files in the workspace's root, so `sed -i` and many builds fail there: "
        "install bubblewrap (bwrap) and allow user namespaces (often kernel.apparmor_restrict_unprivileged_userns or "
        "user.max_user_namespaces; in a container, its security profile)."
    )
    namespaces = own_processes = False


class GuardedSandbox:
    """The sandbox that `choose` returns, once something needs it: to find out which works, it may run commands.

    What its commands change in `session_files` is set aside.
    """

    def __init__(self, choose: Callable[[], Sandbox], session_files: SessionFiles) -> None:
        self._choose = choose
        self._session_files = session_files

    @cached_property
    def _chosen(self) -> Sandbox:
        return self._choose()

    @property
    def name(self) -> str:
        """The chosen one's."""
        return self._chosen.name

    @property
    def promises(self) -> str:
        """The chosen one's."""
        return self._chosen.promises

    @property
    def confines(self) -> bool:
        """Whether a sandbox works here."""
        return self._chosen.confines

    def wrap(
        self, argv: Sequence[str], *, workspace: Path, network: bool = False, read_only: bool = False
    ) -> Sandboxed:
        """The command in the chosen one."""
        wrapped = self._chosen.wrap(argv, workspace=workspace, network=network, read_only=read_only)
        if read_only:
            return wrapped
        look = self._session_files.look()

        def afterwards() -> str:
            words = wrapped.afterwards() if wrapped.afterwards else ""
            return "\n".join(filter(None, [words, look.close()]))

        return msgspec.structs.replace(wrapped, afterwards=afterwards)


def choose_sandbox(
    settings: SandboxSettings,
    environ: Mapping[str, str],
    home: Path,
    secrets: Mapping[str, str] | None = None,
    workspace: Path | None = None,
    *,
    commands: Sequence[tuple[str, str]] = (),
) -> Bubblewrap | Landlock | Unconfined:
    """Bubblewrap if it works, else Landlock with the namespaces available, else none.

    Commands never see `home`, Denizen's own, nor what is in `secrets`, by their places. `workspace` is where they
    mostly run (the current folder). What `commands`, those of hooks and MCP servers, name there is read-only.
    """
    for kind in (Bubblewrap, Landlock, LandlockSharingProcesses, LandlockAlone):
        sandbox = kind(settings, environ, home, secrets, workspace, commands=commands)
        if not problem_with(sandbox):
            return sandbox
    return Unconfined(settings, environ, secrets)


def problem_with(sandbox: Sandbox) -> str:
    """Why the sandbox doesn't work on this machine, found by running a command in it; empty: it works."""
    with tempfile.TemporaryDirectory() as workspace:
        try:
            trial = sandbox.wrap(["true"], workspace=Path(workspace), read_only=True)
            argv = trial.argv
            if isinstance(sandbox, _Confined) and not sandbox.confined_by_launcher:
                argv = argv[argv.index("--") + 1 :]  # to start Python costs more than the trial
            ran = subprocess.run(argv, env=trial.environ, capture_output=True, timeout=_TRIAL_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired, DenizenError) as error:
            return str(error)
    return ran.stderr.decode(errors="replace").strip() or f"exit code {ran.returncode}" if ran.returncode else ""


def supervised(argv: Sequence[str], options: Mapping[str, Any] | None = None) -> list[str]:
    """The command run by `launch.py`, which adopts and ends what escapes its process group; as it is outside Linux."""
    if sys.platform != "linux" or not sys.executable:
        return [*argv]
    text = json.dumps(options or {})
    pieces = [text[start : start + _MAX_ARGUMENT_CHARS] for start in range(0, len(text), _MAX_ARGUMENT_CHARS)]
    # the very interpreter, not a link to it that a command could change in a workspace's own environment
    return [str(Path(sys.executable).resolve()), "-I", "-S", str(_LAUNCHER), *pieces, "--", *argv]


def _grant(access: str, place: Path, without: Sequence[Path]) -> tuple[str, str, Sequence[str]]:
    """For `launch.py`: the access to all of a place but what is `without`."""
    return access, str(place), [str(other) for other in without if other != place and other.is_relative_to(place)]
