"""`analyze`: what can be told of code without running it, in few lines and the worst first."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from denizen.cancellation import run_in_thread
from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult
from denizen.plural import counted
from denizen.ports import Tool, ToolContext, Traits
from denizen.structure import Index
from denizen.tools.analysis.calls import callees, callers
from denizen.tools.analysis.duplicates import duplicates
from denizen.tools.analysis.functions import longest, most_complex
from denizen.tools.analysis.hotspots import changed_files, hotspots
from denizen.tools.analysis.imports import imports
from denizen.tools.analysis.scope import Findings, Scope
from denizen.tools.analysis.security import security
from denizen.tools.files.text import printable
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import tool
from denizen.tools.programs.jq import filtered
from denizen.tools.symbols.project_index import with_index
from denizen.tools.symbols.target import find_target

What = Literal["complexity", "length", "callers", "callees", "hotspots", "duplicates", "security", "imports"]
MOST_PASSED = 5
"""Files that are named which couldn't be looked into."""
MOST_FACTS = 10_000
"""Findings that a filter gets."""


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
        if what in _OF_ONE and not name:
            path, name = await run_in_thread(stop, _parted, workspace, path)
        asked = await run_in_thread(stop, _asked, workspace, path, name)
        if what in _OF_ONE and not asked.symbol:
            raise ToolRefused(f"analyze {what} needs the name of a function: analyze {what} NAME")
        if what not in _OF_ONE and asked.missing:
            raise asked.missing
        changes = await changed_files(asked.below or ".", environ, turn) if what == "hotspots" else Counter[str]()

        def work(index: Index) -> Findings:
            scope = Scope(workspace, index, asked.below, stop)
            findings = _ANALYSES[what](scope, asked, changes)
            findings.remarks = [*findings.remarks, *_passed(scope)]
            return findings

        findings = await run_in_thread(stop, with_index, workspace, home, work, stop, turn.emit)
        return await filtered(_answer(findings, most), jq, findings.facts[:MOST_FACTS])

    return analyze


@dataclass(frozen=True, slots=True)
class _Asked:
    """Where to look (empty: everywhere), and for what: a symbol, and the file or folder in which it is defined."""

    below: str
    symbol: str = ""
    defined_in: str = ""
    missing: ToolRefused | None = None


_Analysis = Callable[[Scope, _Asked, Mapping[str, int]], Findings]
_ANALYSES: Mapping[What, _Analysis] = {
    "complexity": lambda scope, asked, changes: most_complex(scope),
    "length": lambda scope, asked, changes: longest(scope),
    "callers": lambda scope, asked, changes: callers(scope, asked.symbol, asked.defined_in),
    "callees": lambda scope, asked, changes: callees(scope, asked.symbol, asked.defined_in),
    "hotspots": lambda scope, asked, changes: hotspots(scope, changes),
    "duplicates": lambda scope, asked, changes: duplicates(scope),
    "security": lambda scope, asked, changes: security(scope),
    "imports": lambda scope, asked, changes: imports(scope),
}
_OF_ONE = frozenset({"callers", "callees"})


def _asked(workspace: Workspace, path: str, name: str) -> _Asked:
    """What a path means: a place to look, or a symbol; `NAME`, `FILE/Symbol`, or a place and a name."""
    target = find_target(workspace, path)
    if target.path.startswith("/"):
        raise ToolRefused(f"{target.path} is outside the workspace, whose code alone is indexed")
    place = "" if target.path == "." else target.path
    if name and target.is_folder:
        return _Asked(place, name, "", target.missing)
    if name:
        return _Asked("", name, place, target.missing)
    if target.symbol:
        return _Asked("", target.symbol, place, target.missing)
    return _Asked(place)


def _parted(workspace: Workspace, path: str) -> tuple[str, str]:
    """A place and a name that are given as one: `src walk`."""
    place, _, name = path.strip().rpartition(" ")
    return (place, name) if place and find_target(workspace, path).missing else (path, "")


def _passed(scope: Scope) -> Iterator[str]:
    """What couldn't be looked into."""
    left_out = len(scope.foreign)
    notes = [f"{file.path} ({file.note})" for file in scope.files() if file.note]
    passed = [*dict.fromkeys([*notes, *scope.passed])]
    if passed:
        more = f" and {len(passed) - MOST_PASSED} more" if len(passed) > MOST_PASSED else ""
        yield f"not looked into: {printable(', '.join(passed[:MOST_PASSED]))}{more}"
    if left_out:
        yield f"left out: {counted(left_out, 'vendored or generated file')}; name a folder of them to look at them"


def _answer(findings: Findings, most: int) -> ToolResult:
    """The first rows, and what has to be said beside them."""
    lines = [f"[{findings.heading}]", *findings.rows[:most]]
    if len(findings.rows) > most:
        lines.append(f"[{len(findings.rows) - most:,} more; ask for them with `most`, or for a smaller `path`]")
    lines += [f"[{remark}]" for remark in findings.remarks]
    return ToolResult("", "", [Text("\n".join(lines))], details={"found": len(findings.rows)})
