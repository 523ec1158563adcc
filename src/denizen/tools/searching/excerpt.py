"""The lines of a file around the places where a pattern matches."""

import threading
from collections.abc import Sequence

from denizen.errors import ToolRefused
from denizen.tools.files.text import lines_of, open_text, readable
from denizen.tools.files.workspace import Workspace
from denizen.tools.searching.search import Hit

LONGEST = 300
"""Characters of a line that are shown, with the match among them."""
_LONGEST_READ = 1 << 20

Row = tuple[bool, str]
"""A line as it is shown, and whether it counts as a result."""


def excerpt(workspace: Workspace, address: str, hits: Sequence[Hit], context: int, stop: threading.Event) -> list[Row]:
    """The lines of the hits, numbered, with lines around; nothing of a file that is binary or gone meanwhile."""
    columns = dict(hits)
    near = {number + shift for number in columns for shift in range(-context, context + 1)}
    end = max(near)
    rows: list[Row] = []
    last: int | None = None
    try:
        with workspace.at(address) as place, place.open() as file:
            text = open_text(file)
            if text is None:
                return []
            for number, (line, _) in enumerate(lines_of(text, _LONGEST_READ, stop), 1):
                if number in near:
                    rows += [(False, "--")] if context and last and number > last + 1 else []
                    sign = ":" if number in columns else "-"
                    rows.append((number in columns, f"{number}{sign}{_cut(line, columns.get(number, 1))}"))
                    last = number
                if number == end:
                    break
    except ToolRefused:
        return []
    return rows


def _cut(line: str, column: int) -> str:
    """The part of a long line that the match at the column (in bytes) is in."""
    if len(line) > LONGEST:
        at = len(line.encode(errors="surrogateescape")[: column - 1].decode(errors="ignore"))
        begin = max(min(at - LONGEST // 3, len(line) - LONGEST), 0)
        end = begin + LONGEST
        line = ("…" if begin else "") + line[begin:end] + ("…" if end < len(line) else "")
    return readable(line)[0]
