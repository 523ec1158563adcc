"""Which places a turn's tools may touch, told by their real names from `/` on."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from denizen.config.rules import DeniedPaths
from denizen.errors import ToolRefused
from denizen.tools.files.autorun import completes_git_data
from denizen.tools.files.gitdir import git_folder
from denizen.tools.files.text import printable

CONFIGURATION = "denizen.toml"
"""At the workspace's root the tools don't write it: it says what they may do."""


class Borders:
    """`root` may be read and written, the folders `readable` read; without `restricted`, so may everything else.

    `private` is never touched, but for what of the others is inside it; nor is what is `denied`.
    """

    def __init__(
        self,
        root: Path,
        *,
        restricted: bool,
        readable: Sequence[Path],
        private: Path | None,
        denied: DeniedPaths | None = None,
    ) -> None:
        self.root = os.path.realpath(root)
        self._denied = denied or DeniedPaths()
        self._denied_files: set[tuple[int, int]] | None = None
        self._restricted = restricted
        self._forms = {str(form): os.path.realpath(form) for form in (root.absolute(), *readable)}
        self._forms |= {real: real for real in self._forms.values()}
        self._open = [split(real) for real in self._forms.values()]
        self._private = split(os.path.realpath(private)) if private else None
        self._inside_private = [names for names in self._open if self._private and _below(names, self._private)]

    def begin(self, path: str, asked: str) -> tuple[str, list[str]]:
        """The folder where a way to `path` begins, which it may not leave, and the names from there on."""
        if not path:
            raise ToolRefused("an empty path leads nowhere; the workspace itself is `.`")
        if path.startswith("~"):
            raise ToolRefused(f"{printable(asked)}: ~ isn't expanded; give a path relative to the workspace")
        path = path if path.startswith("/") else f"{self.root}/{path}"
        if not self._restricted:
            return "/", split(path)
        forms = [form for form in self._forms if f"{path}/".startswith(f"{form.rstrip('/')}/")]
        if not forms:
            raise self.outside(asked)
        form = max(forms, key=len)
        return self._forms[form], split(path.removeprefix(form))

    def outside(self, asked: str) -> ToolRefused:
        """The refusal of a path that leads out."""
        return ToolRefused(
            f"{printable(asked)} leads out of the workspace {self.root}; only paths inside it are allowed"
        )

    def require_open(self, names: Sequence[str], *, on_the_way: bool = False) -> None:
        """Raises ToolRefused for what is private."""
        if not self._private or not _below(names, self._private):
            return
        if any(_below(names, folder) or (on_the_way and _below(folder, names)) for folder in self._inside_private):
            return
        raise ToolRefused(f"{self.shown(names)} is Denizen's own, which the tools don't touch")

    def denies(self, names: Sequence[str], status: Callable[[], os.stat_result | None]) -> bool:
        """Whether a rule of the user's denies it, or a file that is this one under another name."""
        inside = self.inside(names)
        if not self._denied.patterns or inside is None:
            return False
        if "/".join(inside) in self._denied:
            return True
        found = status()
        if found is None or not stat.S_ISREG(found.st_mode) or found.st_nlink == 1:
            return False
        if self._denied_files is None:
            self._denied_files = {*self._find_denied()}
        return (found.st_dev, found.st_ino) in self._denied_files

    def _find_denied(self) -> Iterator[tuple[int, int]]:
        for folder, _, files in os.walk(self.root):
            below = folder.removeprefix(self.root).removeprefix("/")
            for file in files:
                if f"{below}/{file}".removeprefix("/") in self._denied:
                    with suppress(OSError):
                        found = os.lstat(f"{folder}/{file}")
                        yield found.st_dev, found.st_ino

    def require_writable(self, names: Sequence[str]) -> None:
        """Raises ToolRefused for what may be read at most."""
        inside = self.inside(names)
        if (inside is None and self._restricted) or self._is_lent(names):
            raise ToolRefused(f"{self.shown(names)} can only be read")
        if ".git" in [name.casefold() for name in names] or self._is_git_data(names, inside):
            raise ToolRefused(f"{self.shown(names)} is git's own data, which the tools don't write")
        if inside is not None and [name.casefold() for name in inside] == [CONFIGURATION]:
            raise ToolRefused(f"{self.shown(names)} is Denizen's configuration, which only the user writes")

    def _is_lent(self, names: Sequence[str]) -> bool:
        """Whether it is private, and open only to be read."""
        root = split(self.root)
        if not self._private or not _below(names, self._private):
            return False
        return not (_below(root, self._private) and _below(names, root))

    def _is_git_data(self, names: Sequence[str], inside: Sequence[str] | None) -> bool:
        """Whether it is git's data under another name, which the workspace's `.git` file or the folder's form says."""
        folder = git_folder(Path(self.root))
        named = folder is not None and _below(names, split(str(folder)))
        return named or (inside is not None and completes_git_data(self.root, inside))

    def inside(self, names: Sequence[str]) -> Sequence[str] | None:
        """The names below the workspace; None outside it."""
        root = split(self.root)
        return names[len(root) :] if _below(names, root) else None

    def private_below(self, address: str) -> Sequence[str] | None:
        """The private folder's names below that of an address, so that a walk goes round it; None where it isn't."""
        top = split(address) if address.startswith("/") else [*split(self.root), *split(address)]
        return self._private[len(top) :] if self._private and _below(self._private, top) else None

    def shown(self, names: Sequence[str]) -> str:
        """The path for people and models: relative to the workspace, or absolute outside it."""
        inside = self.inside(names)
        return printable(f"/{'/'.join(names)}" if inside is None else "/".join(inside) or ".")


def split(path: str) -> list[str]:
    """The names of a path."""
    return [name for name in path.split("/") if name not in {"", "."}]


def _below(names: Sequence[str], folder: Sequence[str]) -> bool:
    return [*names[: len(folder)]] == [*folder]
