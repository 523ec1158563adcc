"""A file of code with its structure, and its lines."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from denizen.errors import ToolRefused
from denizen.structure import Outline, Unparsable, language_of, outline
from denizen.structure.outline import MOST_BYTES
from denizen.tools.files.text import lines_of, open_text, readable, size
from denizen.tools.files.workspace import Workspace
from denizen.tools.symbols.project_index import utf8

LONGEST_LINE = 500
"""Characters of a line that are shown."""


@dataclass(frozen=True, slots=True)
class Code:
    """A text file as the tools see it. `source` is its text in UTF-8; `note` says why there is no `outline`."""

    path: str
    bytes: int
    source: bytes = b""
    language: str = ""
    outline: Outline | None = None
    note: str = ""

    @property
    def lines(self) -> int:
        """How many it has."""
        return self.source.count(b"\n") + (not self.source.endswith(b"\n") and self.source != b"")


def load_code(workspace: Workspace, address: str) -> Code:
    """The file and its structure. Raises ToolRefused for what isn't text."""
    with workspace.at(address) as place, place.open() as file:
        data = file.read(MOST_BYTES + 1)
        found = place.stat()
        length = max(len(data), found.st_size if found else 0)
        if length > MOST_BYTES and b"\0" not in data[:8192]:
            return Code(place.path, length, note=f"over {size(MOST_BYTES)}, too large to parse")
        source = utf8(data)
        if source is None:
            raise ToolRefused(f"{place.path} is binary data ({size(length)}), not text; it isn't shown")
    language = language_of(place.path, source)
    if not language:
        return Code(place.path, length, source, note="" if not source else "its structure isn't known")
    try:
        return Code(place.path, length, source, language, outline(source, language))
    except Unparsable as error:
        return Code(place.path, length, source, language, note=str(error))


def numbered(
    workspace: Workspace, address: str, lines: tuple[int, int], most: int, stop: threading.Event
) -> tuple[Sequence[str], bool]:
    """The lines of a file with their numbers, as many as fit into `most` characters, and whether it has more of them.

    Raises ToolRefused for what isn't text.
    """
    first, last = lines
    rows: list[str] = []
    chars = 0
    with workspace.at(address) as place, place.open() as file:
        text = open_text(file)
        if text is None:
            raise ToolRefused(f"{place.path} is binary data, not text; it isn't shown")
        for number, (line, cut) in enumerate(lines_of(text, LONGEST_LINE, stop), 1):
            if number > last or chars > most:
                return rows, True
            if number >= first:
                rows.append(f"{number}\t{readable(line)[0]}{'… [the line goes on]' if cut else ''}")
                chars += len(rows[-1]) + 1
    return rows, False
