"""`grep`: the lines of files that match a regular expression."""

import asyncio
import threading
from collections.abc import Mapping, Sequence
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
from denizen.tools.searching.files import Row, candidates, excerpt
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
        times = FILTERED if jq else 1
        query = Query(pattern, ignore_case, most=1 if mode == "files" else start + times * MOST, count=mode == "count")
        workspace, skipped, stop = Workspace.of(turn), Skipped(), threading.Event()
        page = _Page(workspace, mode, context, start, times, stop)
        searched, late = 0, False
        with closing(candidates(workspace, path, skipped, stop, glob=glob, language=type)) as batches:
            try:
                async with asyncio.timeout(seconds):
                    command = await searcher.command(query)
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


@dataclass(slots=True)
class _Page:
    """What the call shows: the results from `start` on, as far as they fit into `times` the usual amount."""

    workspace: Workspace
    mode: Mode
    context: int
    start: int
    times: int
    stop: threading.Event
    seen: int = 0
    shown: int = 0
    full: bool = False
    rows: list[str] = field(default_factory=list)
    found: list[dict[str, Any]] = field(default_factory=list)
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
                if counts and (self.shown == self.times * MOST or self.chars > self.times * MOST_CHARS):
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
