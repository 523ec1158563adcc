"""`read`: a text file by lines, an image, or a PDF document by pages."""

import io
import os
import shlex
import threading
from typing import Annotated

from msgspec import Meta

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import ToolContext, Traits
from denizen.runtime.cancellation import run_in_thread
from denizen.tools.files.media import seen
from denizen.tools.files.text import lines_of, open_text, readable, size
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import result, tool

MAX_LINES = 2000
MAX_CHARS = 40_000
"""Limits of one call; below the engine's own, so that the note at the end survives."""
MAX_LINE_CHARS = 2000  # characters of a line that are shown

_BINARY = {
    b"PK\x03\x04": ("a zip archive", "unzip -l"),
    b"\x1f\x8b": ("gzip data", "zcat"),
    b"\x7fELF": ("a program or library (ELF)", "readelf"),
    b"SQLite format 3\0": ("an SQLite database", "sqlite3"),
}
"""By what files begin with: what they are, and the program for them."""

Line = Annotated[int, Meta(ge=1)]


@tool(traits=Traits.READS | Traits.REPEATABLE)
async def read(turn: ToolContext, path: str, start: Line = 1, end: Line | None = None) -> ToolResult:
    """Read a text file with line numbers (not part of it), or see an image or PDF. A long file ends with how to go on.

    Args:
        start: First line, or page of a PDF
        end: Last one
    """
    # Numbers as Claude Code, Codex and SWE-agent show them: the model cites, pages and patches by them, and they are
    # those of grep. `edit` goes by text alone, so that a wrong number can't change the wrong line.
    stop = threading.Event()
    return await run_in_thread(stop, _read, Workspace.of(turn), path, (start, end), stop)


def _read(workspace: Workspace, path: str, lines: tuple[int, int | None], stop: threading.Event) -> ToolResult:
    with workspace.at(path) as place, place.open() as file:
        path, head = place.path, file.peek(8192)[:8192]
        length = os.fstat(file.fileno()).st_size
        if shown := seen(file, path, lines, lambda page: f"read {path} start={page}", most=MAX_CHARS, stop=stop):
            return shown
        for magic, (what, program) in _BINARY.items():
            if head.startswith(magic):
                raise ToolRefused(f"{path} is {what} ({size(length)}), not text; bash may have {program} for it")
        text = open_text(file)
        if text is None:
            raise ToolRefused(f"{path} is binary data ({size(length)}), not text; it isn't shown")
        return _read_lines(text, path, lines, length, stop)


def _read_lines(
    text: io.TextIOWrapper, path: str, wanted: tuple[int, int | None], length: int, stop: threading.Event
) -> ToolResult:
    start, end = wanted
    if end and end < start:
        raise ToolRefused(f"`end` ({end}) is before `start` ({start})")
    shown: list[str] = []
    number = chars = long = 0
    more = False
    lines = lines_of(text, MAX_LINE_CHARS, stop)
    for number, (line, cut) in enumerate(lines, 1):
        if number < start:
            continue
        shown.append(f"{number}\t{line}" + ("… [the line goes on]" if cut else ""))
        long = long or (number if cut else 0)
        chars += len(line)
        full = len(shown) == MAX_LINES or chars > MAX_CHARS
        if number == end or full:
            more = full and number != end and (cut or next(lines, None) is not None)
            break
    if not shown and (number or start > 1):
        raise ToolRefused(f"{path} has {number} lines; there is none from {start} to {end or 'the end'}")
    content, broken = readable("\n".join(shown))
    content = content or "[the file is empty]"
    if broken:
        content += f"\n[not valid UTF-8; unreadable bytes, shown as \ufffd: {broken}]"
    if long:
        command = f"sed -n {long}p {shlex.quote(path)} | cut -c{MAX_LINE_CHARS + 1}-"
        content += f"\n[the rest of line {long} with bash: {command}]"
    if more:
        content += f"\n[{size(length)} in all, this was up to line {number}; to go on: read {path} start={number + 1}]"
    return result(content, path=path, start=start, lines=len(shown), bytes=length)
