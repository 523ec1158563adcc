"""Commands in namespaces of their own, by bubblewrap."""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from denizen.config.settings import SandboxSettings
from denizen.ports import Sandboxed
from denizen.tools.files.autorun import Identity
from denizen.tools.sandbox.environment import CommandEnvironment
from denizen.tools.sandbox.layout import Layout, beneath_any, layout
from denizen.tools.sandbox.limits import limited
from denizen.tools.sandbox.supervised import supervised

_NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
)
_EMPTY = ("--tmpfs",)
_NOTHING = ("--ro-bind", "/dev/null")
_SOCKET_LINE = r"[\da-f]+: [\dA-F]{8} [\dA-F]{8} [\dA-F]{8} [\dA-F]{4} [\dA-F]{2} +\d+"
_SOCKET = re.compile(rf"^{_SOCKET_LINE} (/.*?)(?=\n{_SOCKET_LINE}|\n?\Z)", re.MULTILINE | re.DOTALL)
"""The path of one in /proc/net/unix; a name may hold line breaks."""


class Bubblewrap:
    """A mount namespace in which only the workspace and a private /tmp can be written, without network.

    `home` is Denizen's own, which commands never see.
    """

    name = "bubblewrap"
    promises = (
        "Commands can write only in the workspace, but for what runs by itself there (existing .git, .envrc, "
        ".vscode/tasks.json, Denizen's configuration, skills), and in a /tmp of their own; of the home they see "
        "nothing but toolchains, of other processes nothing; the network is off unless the configuration allows it; "
        "what they leave in the background ends with them."
    )
    confines = True
    advice = ""

    def __init__(
        self,
        settings: SandboxSettings,
        environ: Mapping[str, str],
        home: Path,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings
        self._environ = environ
        self._passed = CommandEnvironment(settings, environ, secrets or {})
        self._home = home
        self._made: set[Identity] = set()
        self._program = shutil.which("bwrap", path=environ.get("PATH")) or "bwrap"

    def wrap(self, argv: Sequence[str], *, workspace: Path, network: bool = False) -> Sandboxed:
        """The command in its namespaces. Raises ToolRefused for a workspace that can't be set apart from the home."""
        places = layout(workspace, self._settings, self._environ, self._home, network=network, made=self._made)
        mounts = _mounts(places)
        inner_last = sorted(mounts, key=lambda place: len(place.parts))
        bubble = [
            self._program,
            *_NAMESPACES,
            *([] if network else ["--unshare-net"]),
            *[word for place in inner_last for word in (*mounts[place], str(place))],
            *("--chdir", str(places.workspace), "--", *limited(argv, self._settings)),
        ]
        return Sandboxed(
            supervised(bubble, ["--filter"]),
            self._passed.variables | {"TMPDIR": "/tmp"},  # noqa: S108 (a private one)
            notice=self._passed.notice,
            afterwards=places.guard.disarm,
        )


def _mounts(places: Layout) -> dict[Path, tuple[str, ...]]:
    """What is to be seen at each place: the option that puts it there."""
    mounts: dict[Path, tuple[str, ...]] = {Path("/"): ("--ro-bind", "/")}
    mounts |= {place: _NOTHING for place in _sockets() if not beneath_any(place, (*places.hidden, places.workspace))}
    mounts |= dict.fromkeys(places.hidden, _EMPTY)
    mounts |= {Path("/dev"): ("--dev",), Path("/proc"): ("--proc",)}
    mounts[Path("/proc/sys")] = ("--ro-bind-try", "/proc/sys")  # the kernel's settings know root, whatever it gave up
    mounts |= {place: ("--ro-bind", str(place.resolve())) for place in places.shown}
    mounts |= {place: _EMPTY if place.is_dir() else _NOTHING for place in places.secret}
    mounts[places.workspace] = ("--bind", str(places.workspace))
    mounts |= {place: ("--ro-bind", str(place)) for place in places.guard.protected}
    return mounts


def _sockets() -> Iterator[Path]:
    """Where services of this machine are: a socket takes what is written to it in a read-only file system too."""
    for name in _SOCKET.findall(Path("/proc/net/unix").read_text(errors="surrogateescape")):
        if Path(name).is_socket():
            yield Path(name).resolve()
