"""A text file as an edit begins with it."""

import os
from dataclasses import dataclass

from denizen.errors import ToolRefused
from denizen.tools.changes import NewContent, Version, version
from denizen.tools.text import Encoding, decode, size
from denizen.tools.workspace import Workspace

LARGEST = 32_000_000
"""Bytes of a file that can be edited."""


@dataclass(frozen=True, slots=True)
class Source:
    """The text of the file `path`, how it is written, and which version of the file it is from."""

    path: str
    text: str
    encoding: Encoding
    version: Version | None

    def replaced(self, text: str) -> NewContent:
        """The file's new content. Raises ToolRefused for signs that its encoding doesn't have."""
        return NewContent(self.encoding.encode(text, self.path), replaces=self.version)


def load(workspace: Workspace, path: str) -> Source:
    """Read a file to change it. Raises ToolRefused for what isn't text, or too large to be held in memory."""
    with workspace.at(path) as place, place.open() as file:
        found = os.fstat(file.fileno())
        if found.st_size > LARGEST:
            raise ToolRefused(f"{place.path} is too large to edit ({size(found.st_size)}, at most {size(LARGEST)})")
        decoded = decode(file.read())
    if decoded is None:
        raise ToolRefused(f"{place.path} is binary data ({size(found.st_size)}), not text")
    return Source(place.path, *decoded, version(found))
