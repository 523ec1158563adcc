"""`view`: a folder as a tree, a file as its skeleton, a symbol as its source."""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import Tool, ToolContext, Traits
from denizen.runtime.cancellation import run_in_thread
from denizen.structure import TYPES
from denizen.tools.files.media import seen
from denizen.tools.files.text import size
from denizen.tools.files.tree import read_tree, summary, tree_facts, tree_rows
from denizen.tools.files.walk import SkippedEntries
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import result, tool
from denizen.tools.programs.jq import filtered
from denizen.worlds.code.tools.symbols import lookup
from denizen.worlds.code.tools.symbols.skeleton import facts, line_range, short, skeleton, skeletons, types_only
from denizen.worlds.code.tools.symbols.target import Target, find_target, matching, no_such_symbol

MAX_LINES = 400  # of source shown by one call
MAX_CHARS = 20_000  # the same in characters
MAX_ALTERNATIVE_LINES = 100  # lines up to which several symbols of the same name are all shown
MAX_FOUND = 30  # symbols that are listed when several match
BEGINNING_LINES = 40  # lines shown of a file whose structure isn't known

_LINES = re.compile(r"(\d+)(?:[-:,–](\d*))?")
Answer = tuple[ToolResult, Any]  # the result, and the data for a filter


def view_tool(home: Path) -> Tool:
    """The tool; indexes of projects are kept in Denizen's `home`."""

    @tool(traits=Traits.READS | Traits.REPEATABLE)
    async def view(
        turn: ToolContext,
        path: str = ".",
        *,
        types_only: bool = False,
        depth: Annotated[int, Meta(ge=1, le=20)] | None = None,
        lines: str = "",
        jq: str = "",
    ) -> ToolResult:
        """See code: a folder as a tree, a file as its signatures, `FILE/Class/method` as its source; also images, PDFs.

        Args:
            path: Folder, file, `FILE/Symbol`, or only a symbol's name
            types_only: Only types and their members
            depth: Levels shown
            lines: These lines of the file, or pages of a PDF: `10-20`
            jq: Filter on the structured result
        """
        stop = threading.Event()
        call = _View(Workspace.of(turn), home, types_only, depth, _range(lines), stop, turn.emit)
        answer, data = await run_in_thread(stop, call.answer, path)
        return await filtered(answer, jq, data)

    return view


def _range(lines: str) -> tuple[int, int] | None:
    found = _LINES.fullmatch(lines.strip())
    if not found:
        if lines:
            raise ToolRefused(f"`lines` is {lines!r}, which isn't like 10-20, 10- or 10")
        return None
    first = max(int(found[1]), 1)
    last = first + MAX_LINES - 1 if found[2] == "" else int(found[2] or first)
    if last < first:
        raise ToolRefused(f"`lines` ends at {last}, before it begins at {first}")
    return first, last


@dataclass(frozen=True, slots=True)
class _View:
    """The options of one call."""

    workspace: Workspace
    home: Path
    types_only: bool
    depth: int | None
    lines: tuple[int, int] | None
    stop: threading.Event
    show: Callable[[str], None]

    def answer(self, path: str) -> Answer:
        target = find_target(self.workspace, path)
        if self.lines and (target.is_folder or target.symbol):
            raise ToolRefused(f"{target.shown} is not a file; `lines` are those of a file")
        if not (target.is_folder or target.symbol) and (shown := self._seen(target)):
            return shown, shown.details
        if self.lines:
            return self._lines(target, self.lines)
        if not target.is_folder:
            code = lookup.load_code(self.workspace, target.address)
            if not target.symbol:
                return self._file(code, target)
            found = [lookup.SymbolInFile(code, symbol) for symbol in matching(code.symbols, target.symbol)]
            if not found:
                why = f" ({code.note})" if code.note else ""
                raise no_such_symbol(f"{code.path}{why}", code.symbols, target.symbol)
            return self._symbols(found)
        if target.symbol:
            return self._symbols(lookup.find_symbols(self.workspace, self.home, target, self.stop, self.show))
        if not self.types_only:
            return self._folder(target)
        files = lookup.types_below(self.workspace, self.home, target, self.stop, self.show)
        rows, left = skeletons(files, self.depth)
        text = "\n".join(rows) or f"[no types in {target.path}]"
        if left:
            text += f"\n[{left} symbols left out; more: view a folder or a file of it, types_only=true]"
        every = [(file, symbol) for file, symbols in files.items() for symbol in symbols]
        data = {"path": target.path, "kind": "folder", "types": sum(symbol.kind in TYPES for _, symbol in every)}
        return result(text, **data), {**data, "symbols": [{"file": file, **facts(symbol)} for file, symbol in every]}

    def _seen(self, target: Target) -> ToolResult | None:
        """A picture or a PDF document; None for other files."""
        with self.workspace.at(target.address) as place, place.open() as file:
            pages = self.lines or (1, None)

            def go_on(page: int) -> str:
                return f"view {target.path} lines={page}-"

            return seen(file, target.path, pages, go_on, most=MAX_CHARS, stop=self.stop)

    def _folder(self, target: Target) -> Answer:
        skipped = SkippedEntries()
        tree = read_tree(self.workspace, target.address, skipped, self.stop)
        rows, levels = tree_rows(tree, self.depth)
        more = f"\n[deeper folders are only counted; more: view {target.path}/FOLDER]" if tree.deepest > levels else ""
        text = "\n".join([f"{target.path}/  {summary(tree)}", *rows])
        data = {"path": target.path, "kind": "folder", "files": tree.files, "bytes": tree.bytes}
        answer = result(text + more + skipped.notes(nothing_found=not rows), **data)
        return answer, {**data, "entries": tree_facts(tree, self.depth or levels)}

    def _file(self, code: lookup.CodeFile, target: Target) -> Answer:
        """The skeleton of a file; the beginning of one whose structure isn't known."""
        symbols = types_only(code.symbols) if self.types_only else code.symbols
        problems = code.outline.problems if code.outline else ()
        rows, left = skeleton(symbols, self.depth)
        language = f"{code.language}, " if code.language else ""
        lines = f"{code.lines} lines, " if code.source else ""
        heading = [f"{code.path}  {language}{lines}{size(code.bytes)}"]
        if code.note:
            heading.append(f"[{code.note}]")
        if problems:
            places = ", ".join(str(problem.line) for problem in problems[:5]) + (", …" if len(problems) > 5 else "")
            heading.append(f"[it breaks the grammar at line {places}; some symbols may be missing]")
        if left:
            rows.append(f"[{left} symbols left out; more: view {code.path}/SYMBOL]")
        elif not rows and not code.bytes:
            rows = ["[the file is empty]"]
        elif not rows and code.symbols:
            rows = ["[it defines no types]"]
        elif not rows:
            first, more = lookup.numbered_lines(
                self.workspace, target.address, (1, BEGINNING_LINES), MAX_CHARS // 4, self.stop
            )
            next_lines = f"[more: view {code.path} lines={len(first) + 1}-{len(first) + 100}]"
            rows = [*first, next_lines] if more else [*first]
        data = {"path": code.path, "kind": "file", "language": code.language, "bytes": code.bytes, "lines": code.lines}
        answer = result("\n".join([*heading, *rows]), **data, symbols=len(code.symbols))
        details = {"problems": [each._asdict() for each in problems], "symbols": [facts(each) for each in symbols]}
        return answer, {**data, **details}

    def _lines(self, target: Target, lines: tuple[int, int]) -> Answer:
        first, last = lines
        rows, more = lookup.numbered_lines(self.workspace, target.address, (first, last), MAX_CHARS, self.stop)
        if not rows:
            raise ToolRefused(f"{target.path} has no line {first}")
        end = first + len(rows) - 1
        note = [f"[more: view {target.path} lines={end + 1}-{last}]"] if more and end < last else []
        data = {"path": target.path, "kind": "lines", "first": first, "last": end}
        return result("\n".join([*rows, *note]), **data), {**data, "text": [row.partition("\t")[2] for row in rows]}

    def _symbols(self, found: list[lookup.SymbolInFile]) -> Answer:
        """The source of a symbol; of several with the same name, their paths if that is too much."""
        data = [{"file": each.code.path, **facts(each.symbol)} for each in found]
        lines = sum(each.symbol.last - each.symbol.first + 1 for each in found)
        if len(found) > 1 and lines > MAX_ALTERNATIVE_LINES:
            rows = [f"{each.path}@{each.symbol.first}  {short(each.symbol.signature)}" for each in found[:MAX_FOUND]]
            more = f"; {len(found) - MAX_FOUND} more" if len(found) > MAX_FOUND else ""
            text = "\n".join([*rows, f"[{len(found)} symbols of this name; view one of them{more}]"])
            return result(text, symbols=len(found)), data
        blocks: list[str] = []
        for each, fact in zip(found, data, strict=True):
            fact["source"] = each.source
            symbol, lines = each.symbol, f"lines {line_range(each.symbol)}"
            if self.types_only or self.depth:  # the symbol with those in it, as signatures
                symbols = each.within()
                rows, left = skeleton((types_only(symbols) if self.types_only else []) or symbols, self.depth)
                note = [f"[{left} symbols left out]"] if left else []
                blocks += [f"{each.path}  {lines}", *rows, *note]
            else:
                rows, left = each.numbered(MAX_LINES, MAX_CHARS)
                at = symbol.last - left + 1
                note = [f"[{left} lines left out; more: view {each.code.path} lines={at}-{symbol.last}]"]
                blocks += [f"{each.path}  {symbol.kind}, {lines}", *rows, *(note if left else [])]
        answer = result("\n".join(blocks), path=found[0].path, symbols=len(found))
        return answer, data[0] if len(data) == 1 else data
