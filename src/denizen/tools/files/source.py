"""A file as a change begins with it."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from denizen.errors import ToolRefused
from denizen.tools.files.changes import Version, version
from denizen.tools.files.place import Missing
from denizen.tools.files.text import Encoding, decode, size
from denizen.tools.files.workspace import Workspace

LARGEST = 32_000_000
"""Bytes of a file that can be changed."""


@dataclass(frozen=True)
class Source:
    """The content of the file `path` (None: there is none), and which version of it that is."""

    path: str
    data: bytes | None = None
    executable: bool = False
    version: Version | None = None

    @property
    def text(self) -> str:
        """The content as text. Raises ToolRefused for binary data."""
        return self._decoded[0]

    def rewritten(self, text: str) -> bytes:
        """The bytes of another text, written in the same way. Raises ToolRefused for signs that can't be."""
        return self._decoded[1].encode(text, self.path)

    @cached_property
    def _decoded(self) -> tuple[str, Encoding]:
        decoded = decode(self.data or b"")
        if decoded is None:
            raise ToolRefused(f"{self.path} is binary data ({size(len(self.data or b''))}), not text")
        return decoded


def load(workspace: Workspace, path: str) -> Source:
    """Read a file to change it. Raises ToolRefused for what isn't a file, or too large to be held in memory."""
    with workspace.at(path) as place, place.open() as file:
        found = os.fstat(file.fileno())
        if found.st_size > LARGEST:
            raise ToolRefused(
                f"{place.path} is too large to edit ({size(found.st_size)}, at most {size(LARGEST)}); use sed in bash"
            )
        return Source(place.path, file.read(), bool(found.st_mode & 0o111), version(found))


def load_if_there(workspace: Workspace, path: str) -> Source:
    """Like `load`; a file that isn't there has no content."""
    shown = str(PurePosixPath(path))
    try:
        with workspace.at(path) as place:
            shown = place.path
        return load(workspace, path)
    except Missing:
        return Source(shown)
