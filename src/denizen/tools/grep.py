"""`grep`: the lines of files that match a regular expression."""

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from denizen.cancellation import run_in_thread
from denizen.messages import ToolResult
from denizen.ports import Tool, ToolContext, Traits
from denizen.tools.files.text import printable
from denizen.tools.files.walk import Skipped
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import result, tool
from denizen.tools.programs.jq import filtered
from denizen.tools.searching.candidates import candidates
from denizen.tools.searching.excerpt import Row, excerpt
from denizen.tools.searching.search import Hit, Query, Searcher

MOST = 200
MOST_CHARS = 40_000
"""What one call shows at most: results, and characters."""
FILTERED = 10
"""How many times as much a filter sees."""
SECONDS = 30.0
"""How long a search may take."""

Mode = Literal["lines", "files", "count"]


def grep_tool(environ: Mapping[str, str], *, seconds: float = SECONDS) -> Tool:
    """The tool, which uses `rg` where it is on the PATH of `environ`."""
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
        most = FILTERED if jq else 1
        query = Query(pattern, ignore_case, most=1 if mode == "files" else start + most * MOST, count=mode == "count")
        skipped, stop = Skipped(), threading.Event()
        page = _Page(Workspace.of(turn), mode, context, start, stop, type, most, _hint(pattern), bool(glob or type))
        with closing(candidates(page.workspace, path, glob, skipped, stop)) as batches:
            try:
                async with asyncio.timeout(seconds):
                    await _search(searcher, query, batches, page)
            except TimeoutError:
                page.late = True
        text = page.text() + skipped.notes(nothing_found=not page.seen)
        answer = result(text, path=path, pattern=pattern, matches=page.shown)
        return await filtered(answer, jq, {"whole": not page.notes(), "matches": page.found})

    return grep


def _hint(pattern: str) -> str:
    """What is worth knowing where nothing matches."""
    return "; each line is searched by itself, so none has a line end" if "\n" in pattern or "\\n" in pattern else ""


async def _search(searcher: Searcher, query: Query, batches: Iterator[Sequence[str]], page: "_Page") -> None:
    command = await searcher.command(query)
    while not page.full and (batch := await run_in_thread(page.stop, next, batches, ())):
        batch = _of_type(page.type, batch) if page.type else batch
        page.searched += len(batch)
        hits = await searcher.search(command, page.workspace.root, batch) if batch else {}
        await run_in_thread(page.stop, page.add, [(address, hits[address]) for address in batch if address in hits])


def _of_type(word: str, addresses: Sequence[str]) -> list[str]:
    from denizen.structure import is_of_type

    return [address for address in addresses if is_of_type(address, word)]


@dataclass(slots=True)
class _Page:
    """What the call shows: the results from `start` on, as far as they fit."""

    workspace: Workspace
    mode: Mode
    context: int
    start: int
    stop: threading.Event
    type: str = ""
    times: int = 1
    hint: str = ""
    narrowed: bool = False
    searched: int = 0
    seen: int = 0
    shown: int = 0
    full: bool = False
    late: bool = False
    rows: list[str] = field(default_factory=list)
    found: list[dict[str, Any]] = field(default_factory=list)
    chars: int = 0

    def add(self, files: Sequence[tuple[str, Sequence[Hit]]]) -> None:
        """Show what was found in the files."""
        for address, hits in files:
            file = printable(address.removeprefix("./"))
            heading = [file] if self.mode == "lines" else []
            for counts, row in self._rows(address, hits):
                if self.full:
                    return
                self._add(file, row, heading, counts=counts)

    def _add(self, file: str, row: str, heading: list[str], *, counts: bool) -> None:
        if counts and (self.shown == self.times * MOST or self.chars > self.times * MOST_CHARS):
            self.full = True
            return
        self.seen += counts
        if self.seen >= self.start - (not counts):
            self.shown += counts
            self.found += [self._fact(file, row)] if counts else []
            self.rows += [*heading, row]
            self.chars += len(row) + sum(map(len, heading))
            heading.clear()

    def _rows(self, address: str, hits: Sequence[Hit]) -> Sequence[Row]:
        if self.mode == "lines":
            return excerpt(self.workspace, address, hits, self.context, self.stop)
        is_text = excerpt(self.workspace, address, [(1, 1)], 0, self.stop)
        count = f": {hits[0][0]}" if self.mode == "count" else ""
        return [(True, printable(address.removeprefix("./")) + count)] if is_text else []

    def _fact(self, file: str, row: str) -> dict[str, Any]:
        """A result as a filter gets it."""
        if self.mode == "lines":
            line, _, text = row.partition(":")
            return {"file": file, "line": int(line), "text": text}
        return {"file": file, "count": int(row.rpartition(": ")[2])} if self.mode == "count" else {"file": file}

    def text(self) -> str:
        """The rows, and how to see what they leave out."""
        return "\n".join([*(self.rows or [self._nothing()]), *self.notes()])

    def _nothing(self) -> str:
        if self.seen:
            return "[no more matches]"
        if self.narrowed and not self.searched and not self.late:
            return "[no file to search: none is here that `glob` and `type` let in]"
        return f"[no matches{self.hint}]"

    def notes(self) -> list[str]:
        """Why that isn't all."""
        notes: list[str] = []
        if self.full:
            last = self.start + self.shown
            notes.append(f"[results {self.start}–{last - 1}; to go on: grep with start={last}]")
        if self.late:
            notes.append(
                "[not all was searched: it took too long; give a narrower `path` or `glob`, or a simpler pattern]"
            )
        return notes
