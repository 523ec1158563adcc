"""Which places a sandboxed command sees, and which it may change."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from denizen.config.home import user_folder
from denizen.config.settings import SandboxSettings
from denizen.errors import ToolRefused
from denizen.tools.files.autorun import Identity, git_folder, shared_git_folder
from denizen.tools.sandbox.guard import Guard

_HIDDEN = ("/home", "/root", "/run", "/tmp", "/var/tmp")  # noqa: S108 (hidden, not written)
_SECRET = (".cargo/credentials", ".cargo/credentials.toml", ".local/share/uv/credentials")
"""What toolchains keep keys in."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The workspace is writable but for what its `guard` protects; the rest can only be read, `hidden` not even that.

    In hidden places, `shown` ones can be read, but for what is `secret` in them. Of two places where one holds the
    other, the inner one counts. A shown place may be a link to the real one; all others are no links.
    """

    workspace: Path
    guard: Guard
    hidden: tuple[Path, ...]
    shown: tuple[Path, ...]
    secret: tuple[Path, ...]


def layout(
    workspace: Path,
    settings: SandboxSettings,
    environ: Mapping[str, str],
    home: Path,
    *,
    network: bool,
    made: set[Identity],
) -> Layout:
    """The layout for commands in `workspace`; `home` is Denizen's own, `made` the repositories that commands made.

    Raises ToolRefused where none can hold.
    """
    workspace, user, home = workspace.resolve(), user_folder(environ).resolve(), home.resolve()
    if user.is_relative_to(workspace):
        raise ToolRefused(
            f"commands can't run with {workspace} as the workspace: it holds the home directory {user}, which a "
            "sandbox hides; ask the user to choose a folder inside it"
        )
    if (workspace / ".git").is_symlink():
        raise ToolRefused(f"commands can't run in {workspace}: its .git is a link, which a sandbox can't protect")
    hidden = {place.resolve() for place in (*map(Path, _HIDDEN), user, home) if place.is_dir()} - {Path("/")}
    shown = [*_toolchains(settings, user), *_environments(environ, workspace), *_repository(workspace)]
    if network:
        shown.append(Path("/etc/resolv.conf").resolve())
    secret = [user / name for name in _SECRET]
    return Layout(
        workspace,
        Guard(workspace, made, environ),
        hidden=tuple(sorted(hidden)),
        shown=tuple(
            place
            for place in (place.parent.resolve() / place.name for place in shown if place.exists())
            if beneath_any(place, hidden)
            and not place.is_relative_to(workspace)
            and not any(beneath_any(held, [place.resolve()]) for held in (user, home))
        ),
        secret=tuple(_real([*secret, *(place.resolve() for place in secret)])),
    )


def beneath_any(place: Path, others: Iterable[Path]) -> bool:
    """Whether the place is one of the others, or in one of them."""
    return any(place.is_relative_to(other) for other in others)


def _toolchains(settings: SandboxSettings, user: Path) -> Iterator[Path]:
    yield from (user / name for name in settings.toolchains)
    yield user / ".nix-profile"
    yield Path("/run/current-system")  # where NixOS has its programs
    yield Path("/home/linuxbrew/.linuxbrew")


def _environments(environ: Mapping[str, str], workspace: Path) -> Iterator[Path]:
    """The Python environment that the user works in, with the installation that its interpreter is of.

    Not of one in the workspace: there a command could point the interpreter at any place that it would like to see.
    """
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        place = Path(environ.get(name) or "/")
        if place.is_absolute() and not place.resolve().is_relative_to(workspace):
            yield place
            yield (place / "bin/python").resolve().parent.parent


def _repository(workspace: Path) -> Iterator[Path]:
    folder = git_folder(workspace)
    if folder:
        yield shared_git_folder(folder)


def _real(places: Iterable[Path]) -> Iterator[Path]:
    return (place for place in dict.fromkeys(places) if place.exists() and not place.is_symlink())
