"""Commands confined by the kernel's Landlock and seccomp, where bubblewrap can't be had."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from denizen.config.home import user_folder
from denizen.config.settings import SandboxSettings
from denizen.ports import Sandboxed
from denizen.tools.sandbox.environment import scrubbed
from denizen.tools.sandbox.layout import Layout, layout
from denizen.tools.sandbox.supervised import supervised

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


class Landlock:
    """Only the workspace and a private folder can be written; nothing of the home is read, and no socket opened.

    `home` is Denizen's own, which commands never see.
    """

    name = "Landlock"
    promises = (
        "Commands can write only in the workspace, but for .git and Denizen's configuration there, and in $TMPDIR; "
        "beside those two nothing can be added or removed, only in the folders next to them; of the home they read "
        "nothing but toolchains; sockets are refused unless the configuration allows the network; what they leave in "
        "the background ends with them. Permissions and times of other files can still be changed, and before Linux "
        "6.12 other processes be ended."
    )
    confines = True

    def __init__(self, settings: SandboxSettings, environ: Mapping[str, str], home: Path) -> None:
        self._settings = settings
        self._environ = environ
        self._home = home

    def wrap(self, argv: Sequence[str], *, workspace: Path, network: bool = False) -> Sandboxed:
        """The confined command. Raises ToolRefused for a workspace that can't be set apart from the home."""
        places = layout(workspace, self._settings, self._environ, self._home, network=network)
        options = [*_grants(places), *self._links(places), *(["--network"] if network else [])]
        return Sandboxed(supervised(argv, options), scrubbed(self._environ, self._settings.environment))

    def _links(self, places: Layout) -> Iterator[str]:
        """What stands in the command's own home for what is shown of the real one."""
        user = user_folder(self._environ).resolve()
        for place in places.shown:
            if place.is_relative_to(user):
                yield from ("--link", str(place.relative_to(user)), str(place.resolve()))


def _grants(places: Layout) -> Iterator[str]:
    unseen = (*places.hidden, *places.secret)
    yield from _grant("--read", Path("/"), (*unseen, Path("/dev")))
    for place in places.shown:
        yield from _grant("--read", place.resolve(), unseen)
    yield from _grant("--read", places.workspace, unseen)
    yield from _grant("--write", places.workspace, (*unseen, *places.protected))
    for device in _DEVICES:
        yield from _grant("--write", Path(device), ())


def _grant(access: str, place: Path, without: Sequence[Path]) -> Iterator[str]:
    yield from (access, str(place))
    for other in without:
        if other != place and other.is_relative_to(place):
            yield from ("--except", str(other))
