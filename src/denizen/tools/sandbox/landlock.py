"""Commands confined by the kernel's Landlock and seccomp, where bubblewrap can't be had."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from denizen.config.home import user_folder
from denizen.config.settings import SandboxSettings
from denizen.ports import Sandboxed
from denizen.tools.files.autorun import Identity
from denizen.tools.sandbox.environment import CommandEnvironment
from denizen.tools.sandbox.layout import Layout, layout
from denizen.tools.sandbox.limits import limited
from denizen.tools.sandbox.supervised import supervised

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


_WRITABLE = (
    "Commands can write only in the workspace, but for what runs by itself there (existing .git, .envrc, "
    ".vscode/tasks.json, Denizen's configuration, skills), and in $TMPDIR; "
)
_THE_REST = (
    "of the home they read nothing but toolchains; sockets are refused unless the configuration allows the network; "
    "what they leave in the background ends with them. Permissions and times of other files can still be changed, and "
    "before Linux 6.12 other processes be ended."
)


class Landlock:
    """Only the workspace and a private folder can be written; nothing of the home is read, and no socket opened.

    In a mount namespace of its own, where what is protected in the workspace is read-only. `home` is Denizen's own,
    which commands never see.
    """

    name = "Landlock"
    promises = _WRITABLE + _THE_REST
    confines = True
    advice = ""
    namespaces = True

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

    def wrap(self, argv: Sequence[str], *, workspace: Path, network: bool = False) -> Sandboxed:
        """The confined command. Raises ToolRefused for a workspace that can't be set apart from the home."""
        places = layout(workspace, self._settings, self._environ, self._home, network=network, made=self._made)
        options = [*_grants(places, protected=() if self.namespaces else places.guard.protected), *self._links(places)]
        options += ["--network"] if network else []
        if self.namespaces:
            options += [
                "--namespaces",
                *(word for place in places.guard.protected for word in ("--protect", str(place))),
            ]
        return Sandboxed(
            supervised(limited(argv, self._settings, count=self.namespaces), options),
            self._passed.variables,
            notice=f"{self.advice} {self._passed.notice}".strip(),
            afterwards=places.guard.disarm,
        )

    def _links(self, places: Layout) -> Iterator[str]:
        """What stands in the command's own home for what is shown of the real one."""
        user = user_folder(self._environ).resolve()
        for place in places.shown:
            if place.is_relative_to(user):
                yield from ("--link", str(place.relative_to(user)), str(place.resolve()))


class LandlockAlone(Landlock):
    """Without namespaces, where the kernel or a container refuses them.

    Landlock grants whole folders: in one that holds something protected, nothing can be made, renamed or deleted.
    """

    name = "Landlock without namespaces"
    promises = (
        f"{_WRITABLE}in the folders that hold those, such as the workspace's root, files can be changed but none "
        f"made, renamed or deleted; {_THE_REST}"
    )
    advice = (
        "Commands can't make, rename or delete files in the workspace's root, so `sed -i` and many builds fail there: "
        "install bubblewrap (bwrap) and allow user namespaces (often kernel.apparmor_restrict_unprivileged_userns or "
        "user.max_user_namespaces; in a container, its security profile)."
    )
    namespaces = False


def _grants(places: Layout, *, protected: Sequence[Path]) -> Iterator[str]:
    unseen = (*places.hidden, *places.secret)
    yield from _grant("--read", Path("/"), (*unseen, Path("/dev")))
    for place in places.shown:
        yield from _grant("--read", place.resolve(), unseen)
    yield from _grant("--read", places.workspace, unseen)
    yield from _grant("--write", places.workspace, (*unseen, *protected))
    for device in _DEVICES:
        yield from _grant("--write", Path(device), ())


def _grant(access: str, place: Path, without: Sequence[Path]) -> Iterator[str]:
    yield from (access, str(place))
    for other in without:
        if other != place and other.is_relative_to(place):
            yield from ("--except", str(other))
