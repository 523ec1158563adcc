"""`grep`: the lines of files that match a regular expression."""

import asyncio
import os
import stat
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Tool, ToolContext, Traits
from denizen.runtime.cancellation import run_in_thread
from denizen.tools.files.glob import any_glob
from denizen.tools.files.open_path import EFFECTIVE_IDS
from denizen.tools.files.text import lines_of, open_text, printable, readable, size
from denizen.tools.files.walk import FoundEntry, SkippedEntries, path_below, walk
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import result, tool
from denizen.tools.programs.jq import filtered
from denizen.tools.searching.search import Hit, Query, Searcher

MAX_RESULTS = 200  # results that one call shows
MAX_CHARS = 40_000  # characters that it shows
FILTER_FACTOR = 10  # how many times as much a filter sees
TIMEOUT_S = 30.0  # how long a search may take

BATCH_CHARS = 60_000  # characters of file names that one process is given
MAX_FILE_BYTES = 200_000_000  # bytes of a file that is searched: all of it may be one line, which is held in memory
MAX_LINE_CHARS = 300  # characters of a line that are shown, with the match among them
_MAX_READ_BYTES = 1 << 20

Mode = Literal["lines", "files", "count"]
Row = tuple[bool, str]  # a line as it is shown, and whether it counts as a result


def grep_tool(environ: Mapping[str, str], *, seconds: float = TIMEOUT_S) -> Tool:
    """The tool, which uses `rg` if it is on the PATH of `environ`."""
    searcher = Searcher(environ)

    @tool(traits=Traits.READS | Traits.REPEATABLE, shell_names=("text-search",))
    async def grep(
        turn: ToolContext,
        pattern: str,
        path: str = ".",
        *,
        glob: str = "",
        type: str = "",
        ignore_case: bool = False,
        context: Annotated[int, Meta(ge=0, le=50)] = 0,
        mode: Mode = "lines",
        start: Annotated[int, Meta(ge=1)] = 1,
        jq: str = "",
    ) -> ToolResult:
        """Search files for lines that match a regular expression, without files that git ignores.

        Args:
            glob: Files like `*.py`
            type: Only this language
            context: Lines around each match
            start: First match shown
        """
        times = FILTER_FACTOR if jq else 1
        query = Query(
            pattern, ignore_case, most=1 if mode == "files" else start + times * MAX_RESULTS, count=mode == "count"
        )
        workspace, skipped, stop = Workspace.of(turn), SkippedEntries(), threading.Event()
        page = _Page(workspace, mode, context, start, times, stop)
        searched, late = 0, False
        with closing(candidates(workspace, path, skipped, stop, glob=glob, language=type)) as batches:
            try:
                async with asyncio.timeout(seconds):
                    command = await searcher.command(query, workspace.root)
                    while not page.full and (batch := await run_in_thread(stop, next, batches, ())):
                        searched += len(batch)
                        hits = await searcher.search(command, workspace.root, batch)
                        await run_in_thread(stop, page.add, [(file, hits[file]) for file in batch if file in hits])
            except TimeoutError:
                late = True
        rows = page.rows
        if page.seen and not rows:
            rows = ["[no more matches]"]
        elif not rows and (glob or type) and not searched and not late:
            rows = ["[no file to search: none is here that `glob` and `type` let in]"]
        elif not rows:
            by_line = "\n" in pattern or "\\n" in pattern
            rows = [f"[no matches{'; each line is searched by itself, so none has a line end' if by_line else ''}]"]
        notes: list[str] = []
        if page.full:
            last = start + page.shown
            notes.append(f"[results {start}–{last - 1}; to go on: grep with start={last}]")
        if late:
            notes.append(
                "[not all was searched: it took too long; give a narrower `path` or `glob`, or a simpler pattern]"
            )
        text = "\n".join([*rows, *notes]) + skipped.notes(nothing_found=not page.seen)
        answer = result(text, path=path, pattern=pattern, matches=page.shown)
        return await filtered(answer, jq, {"whole": not notes, "matches": page.found})

    return grep


class _Page(msgspec.Struct):
    """The results that a call shows: those from `start` on that fit into `times` the usual amount."""

    workspace: Workspace
    mode: Mode
    context: int
    start: int
    times: int
    stop: threading.Event
    seen: int = 0
    shown: int = 0
    full: bool = False
    rows: list[str] = msgspec.field(default_factory=list)
    found: list[dict[str, Any]] = msgspec.field(default_factory=list)
    chars: int = 0

    def add(self, files: Sequence[tuple[str, Sequence[Hit]]]) -> None:
        """Show what was found in the files."""
        for address, hits in files:
            file = printable(address.removeprefix("./"))
            heading = [file] if self.mode == "lines" else []
            if self.mode == "lines":
                rows: Sequence[Row] = excerpt(self.workspace, address, hits, self.context, self.stop)
            elif excerpt(self.workspace, address, [(1, 1)], 0, self.stop):  # it is text
                rows = [(True, f"{file}: {hits[0][0]}" if self.mode == "count" else file)]
            else:
                rows = []
            for counts, row in rows:
                if counts and (self.shown == self.times * MAX_RESULTS or self.chars > self.times * MAX_CHARS):
                    self.full = True
                    return
                self.seen += counts
                if self.seen < self.start - (not counts):
                    continue
                if counts:
                    self.shown += 1
                    fact: dict[str, Any] = {"file": file}  # the result as a filter gets it
                    if self.mode == "lines":
                        line, _, text = row.partition(":")
                        fact |= {"line": int(line), "text": text}
                    elif self.mode == "count":
                        fact["count"] = hits[0][0]
                    self.found.append(fact)
                self.rows += [*heading, row]
                self.chars += len(row) + sum(map(len, heading))
                heading.clear()


def candidates(
    workspace: Workspace, path: str, skipped: SkippedEntries, stop: threading.Event, *, glob: str, language: str
) -> Generator[Sequence[str]]:
    """The addresses of the file `path`, or of those below the folder, as many at a time as one process can be given.

    Only those that fit `glob` (with `!`: that don't, and aren't in a folder that does), and of the language. Raises
    ToolRefused for anything but a file or folder.
    """
    globs = any_glob(glob.removeprefix("!")) if glob else []

    def wanted(names: Sequence[str]) -> bool:
        if not _is_of_language(names[-1], language):
            return False
        if not glob.startswith("!"):
            return not globs or any(each.matches(names, is_folder=False) for each in globs)
        entries = [names[:length] for length in range(1, len(names) + 1)]
        return not any(each.matches(entry, is_folder=entry != names) for each in globs for entry in entries)

    with workspace.at(path) as place:
        found, top = place.stat(), place.address
        if found and stat.S_ISREG(found.st_mode):
            if found.st_size > MAX_FILE_BYTES:
                raise ToolRefused(f"{place.path} is too large to search ({size(found.st_size)}); use bash, with grep")
            if _is_of_language(top, language):
                yield [top]
            return
    batch: list[str] = []
    length = 0
    with closing(walk(workspace, path, skipped, stop)) as entries:
        for entry in entries:
            if entry.is_file and wanted(entry.names):
                if why := _why_unsearchable(entry):
                    skipped.unread.append(f"{path_below(top.removeprefix('./'), entry.names)} ({why})")
                    continue
                batch.append("/".join([top.rstrip("/"), *entry.names]))
                length += len(batch[-1])
            if length > BATCH_CHARS:
                yield [*batch]
                batch.clear()
                length = 0
    if batch:
        yield batch


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
            for number, (line, _) in enumerate(lines_of(text, _MAX_READ_BYTES, stop), 1):
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


def _is_of_language(path: str, language: str) -> bool:
    if not language:
        return True
    from denizen.structure import is_of_type

    return is_of_type(path, language)


def _why_unsearchable(entry: FoundEntry) -> str:
    """Why a file can't be searched; empty: it can."""
    name = entry.names[-1]
    try:
        found = os.stat(name, dir_fd=entry.folder, follow_symlinks=False)
    except OSError as error:
        return error.strerror or str(error)
    if found.st_size > MAX_FILE_BYTES:
        return size(found.st_size)
    may = os.access(name, os.R_OK, dir_fd=entry.folder, effective_ids=EFFECTIVE_IDS)
    return "" if may else "Permission denied"


def _cut(line: str, column: int) -> str:
    """The part of a long line that the match at the column (in bytes) is in."""
    if len(line) > MAX_LINE_CHARS:
        at = len(line.encode(errors="surrogateescape")[: column - 1].decode(errors="ignore"))
        begin = max(min(at - MAX_LINE_CHARS // 3, len(line) - MAX_LINE_CHARS), 0)
        end = begin + MAX_LINE_CHARS
        line = ("…" if begin else "") + line[begin:end] + ("…" if end < len(line) else "")
    return readable(line)[0]
