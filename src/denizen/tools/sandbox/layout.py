"""Which places a sandboxed command sees, and which it may change."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from denizen.config.home import user_folder
from denizen.config.settings import SandboxSettings
from denizen.errors import ToolRefused
from denizen.trusted.autorun import git_folder, shared_git_folder

_HIDDEN = ("/home", "/root", "/run", "/tmp", "/var/tmp")  # noqa: S108 (hidden, not written)
_PROGRAMS = {"bin", "dev", "gnu", "lib", "lib32", "lib64", "libx32", "nix", "opt", "proc", "sbin", "sys", "usr"}
"""Of the root's folders, those that programs need."""
_SECRET = (".cargo/credentials", ".cargo/credentials.toml", ".local/share/uv/credentials")
"""Files where toolchains keep keys."""


class Layout(msgspec.Struct, frozen=True):
    """The workspace, which is `writable` or not; the rest can only be read, `hidden` places not even that.

    In hidden places, `shown` ones can be read, except what is `secret` in them. Of two places where one holds the
    other, the inner one counts. A shown place may be a link to the real one; all others are no links.
    """

    workspace: Path
    writable: bool
    hidden: tuple[Path, ...]
    shown: tuple[Path, ...]
    secret: tuple[Path, ...]

    def hides(self, place: Path) -> bool:
        """Whether nothing can be read at an absolute place."""
        known = (*self.hidden, *self.shown, self.workspace)
        around = [other for other in known for name in (place, place.resolve()) if name.is_relative_to(other)]
        return bool(around) and max(around, key=lambda other: len(other.parts)) in self.hidden


def layout(
    workspace: Path,
    settings: SandboxSettings,
    environ: Mapping[str, str],
    home: Path,
    *,
    network: bool = False,
    read_only: bool = False,
) -> Layout:
    """The layout for commands in `workspace`; `home` is Denizen's own.

    With `read_only` nothing can be written, and besides the workspace only programs are seen. Raises ToolRefused if
    no layout can hold.
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
    shown = [user / name for name in (*settings.toolchains, ".nix-profile")]
    shown += [Path("/run/current-system"), Path("/home/linuxbrew/.linuxbrew")]  # the one is NixOS's
    # The Python environment that the user works in, with the installation that its interpreter is of. Not one in the
    # workspace: there a command could point the interpreter at any place that it would like to see.
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        place = Path(environ.get(name) or "/")
        if place.is_absolute() and not place.resolve().is_relative_to(workspace):
            shown += [place, (place / "bin/python").resolve().parent.parent]
    if folder := git_folder(workspace):
        shown.append(shared_git_folder(folder))
    if network:
        shown.append(Path("/etc/resolv.conf").resolve())
    if read_only:
        tops = (place for place in Path("/").iterdir() if place.is_dir() and not place.is_symlink())
        hidden |= {place for place in tops if place.name not in _PROGRAMS}
        shown.append(Path("/etc/ld.so.cache"))
    secret = [user / name for name in _SECRET]
    secret += [place.resolve() for place in secret]
    return Layout(
        workspace,
        writable=not read_only,
        hidden=tuple(sorted(hidden)),
        shown=tuple(
            place
            for place in (place.parent.resolve() / place.name for place in shown if place.exists())
            if is_in_any(place, hidden)
            and not place.is_relative_to(workspace)
            and not any(is_in_any(held, [place.resolve()]) for held in (user, home))
        ),
        secret=tuple(place for place in dict.fromkeys(secret) if place.exists() and not place.is_symlink()),
    )


def is_in_any(place: Path, others: Iterable[Path]) -> bool:
    """Whether the place is one of the others, or in one of them."""
    return any(place.is_relative_to(other) for other in others)
