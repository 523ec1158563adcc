"""`analyze`: what can be said about code without running it, in few lines and the worst first."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult
from denizen.ports import Tool, ToolContext, Traits
from denizen.runtime.cancellation import run_in_thread
from denizen.structure import Index
from denizen.text.plural import counted, first_of
from denizen.tools.files.text import printable
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import tool
from denizen.tools.programs.jq import filtered
from denizen.worlds.code.tools.analysis.calls import callees, callers
from denizen.worlds.code.tools.analysis.duplicates import duplicates
from denizen.worlds.code.tools.analysis.functions import changed_files, hotspots, longest, most_complex
from denizen.worlds.code.tools.analysis.imports import imports
from denizen.worlds.code.tools.analysis.scope import Findings, Scope
from denizen.worlds.code.tools.analysis.security import security
from denizen.worlds.code.tools.symbols.project_index import with_index
from denizen.worlds.code.tools.symbols.target import find_target

What = Literal["complexity", "length", "callers", "callees", "hotspots", "duplicates", "security", "imports"]
MAX_UNREAD = 5  # listed files that couldn't be read
MAX_FACTS = 10_000  # findings passed to a filter


def analyze_tool(home: Path, environ: Mapping[str, str]) -> Tool:
    """The tool; the indexes of projects are kept in Denizen's `home`, and git is found by `environ`."""

    @tool(traits=Traits.READS | Traits.REPEATABLE)
    async def analyze(
        turn: ToolContext,
        what: What,
        path: str = ".",
        name: str = "",
        *,
        most: Annotated[int, Meta(ge=1, le=500)] = 15,
        jq: str = "",
    ) -> ToolResult:
        """Ask about code: complex or long functions, callers and callees, hotspots, duplicates, security, imports.

        Args:
            what: callers and callees are found by name
            path: File or folder; of callers and callees `NAME` or `FILE/Symbol`
            name: Function whose callers or callees are wanted
            most: Rows shown
            jq: Filter on the structured result
        """
        stop = threading.Event()
        workspace = Workspace.of(turn)
        of_one = what in {"callers", "callees"}
        question = await run_in_thread(stop, _question, workspace, path, name, of_one)
        if of_one and not question.symbol:
            raise ToolRefused(f"analyze {what} needs the name of a function: analyze {what} NAME")
        if not of_one and question.missing:
            raise question.missing
        changes = await changed_files(question.below or ".", environ, turn) if what == "hotspots" else {}

        def work(index: Index) -> Findings:
            scope = Scope(workspace, index, question.below, stop)
            findings = _ANALYSES[what](scope, question, changes)
            notes = [f"{file.path} ({file.note})" for file in scope.files() if file.note]
            unread = [*dict.fromkeys([*notes, *scope.unread])]
            remarks = [*findings.remarks]
            if unread:
                remarks.append(f"not read: {printable(first_of(unread, MAX_UNREAD))}")
            if scope.left_out:
                files = counted(len(scope.left_out), "vendored or generated file")
                remarks.append(f"left out: {files}; name a folder of them to analyze them")
            findings.remarks = remarks
            return findings

        findings = await run_in_thread(stop, with_index, workspace, home, work, stop, turn.emit)
        lines = [f"[{findings.heading}]", *findings.rows[:most]]
        if len(findings.rows) > most:
            lines.append(f"[{len(findings.rows) - most:,} more; ask for them with `most`, or for a smaller `path`]")
        lines += [f"[{remark}]" for remark in findings.remarks]
        answer = ToolResult("", "", [Text("\n".join(lines))], details={"found": len(findings.rows)})
        return await filtered(answer, jq, findings.facts[:MAX_FACTS])

    return analyze


@dataclass(frozen=True, slots=True)
class _Question:
    """Where to look (empty: everywhere), and for what: a symbol, and the file or folder in which it is defined."""

    below: str
    symbol: str = ""
    defined_in: str = ""
    missing: ToolRefused | None = None


_ANALYSES: Mapping[What, Callable[[Scope, _Question, Mapping[str, int]], Findings]] = {
    "complexity": lambda scope, question, changes: most_complex(scope),
    "length": lambda scope, question, changes: longest(scope),
    "callers": lambda scope, question, changes: callers(scope, question.symbol, question.defined_in),
    "callees": lambda scope, question, changes: callees(scope, question.symbol, question.defined_in),
    "hotspots": lambda scope, question, changes: hotspots(scope, changes),
    "duplicates": lambda scope, question, changes: duplicates(scope),
    "security": lambda scope, question, changes: security(scope),
    "imports": lambda scope, question, changes: imports(scope),
}


def _question(workspace: Workspace, path: str, name: str, of_one: bool) -> _Question:
    """The place to look or the symbol that a path means: `NAME`, `FILE/Symbol`, or a place and a name."""
    if of_one and not name:
        place, _, last = path.strip().rpartition(" ")  # given as one: `src walk`
        if place and find_target(workspace, path).missing:
            path, name = place, last
    target = find_target(workspace, path)
    if target.path.startswith("/"):
        raise ToolRefused(f"{target.path} is outside the workspace; only its code is indexed")
    place = "" if target.path == "." else target.path
    if name and target.is_folder:
        return _Question(place, name, "", target.missing)
    if name or target.symbol:
        return _Question("", name or target.symbol, place, target.missing)
    return _Question(place)
