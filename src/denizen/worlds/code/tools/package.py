"""`package`: what the projects of the workspace depend on."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult
from denizen.ports import Tool, ToolContext, Traits
from denizen.runtime.cancellation import run_in_thread
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import tool
from denizen.tools.programs.jq import filtered
from denizen.worlds.code.tools.packages import report
from denizen.worlds.code.tools.packages.audit import audit, audit_rows
from denizen.worlds.code.tools.packages.projects import FoundProjects, find_projects

Most = Annotated[int, Meta(ge=1, le=1000)]
Depth = Annotated[int, Meta(ge=1, le=20)]
Rows = Callable[[Sequence[Mapping[str, Any]]], Iterator[str]]

_MAX_OTHERS = 5
_NOT_IN_FILES = {
    "outdated": (
        "manifests and lock files don't say which releases are newer. Run the package manager's own command with bash: "
        "`pip list --outdated`, `npm outdated`, `cargo update --dry-run` or `go list -m -u all`"
    ),
    "audit": (
        "manifests and lock files don't say which versions are unsafe. Run `pip-audit`, `npm audit`, `cargo audit` or "
        "`govulncheck ./...` with bash; or the user sets packages.advisories to a file of advisories in OSV's format"
    ),
}


def package_tool(advisories: Path | None) -> Tool:
    """The tool; `advisories` is the file or folder that `audit` reads."""

    @tool(traits=Traits.READS | Traits.REPEATABLE)
    async def package(
        turn: ToolContext,
        action: Literal["list", "tree", "info", "audit", "outdated"],
        name: str = "",
        *,
        path: str = ".",
        depth: Depth = 3,
        most: Most = 100,
        jq: str = "",
    ) -> ToolResult:
        """What the project depends on, from its manifests and lock files (Python, npm, cargo, go), without network.

        Args:
            action: list: direct dependencies. tree: who brings what. info: one package. audit: known advisories
            name: Package
            path: Project folder
            depth: Levels of the tree
            most: Rows shown
            jq: Filter on the structured result
        """
        if action == "outdated" or (action == "audit" and advisories is None):
            raise ToolRefused(_NOT_IN_FILES[action])
        if action == "info" and not name:
            raise ToolRefused("package info needs the name of a package")
        stop = threading.Event()
        found = await run_in_thread(stop, find_projects, Workspace.of(turn), path, stop)

        def look() -> tuple[list[dict[str, Any]], Rows]:
            if action == "audit" and advisories:
                return audit(found.projects, name, turn.workspace / advisories.expanduser()), audit_rows
            if action == "info":
                return report.info(found.projects, name), report.info_rows
            if action == "tree":
                return [report.tree(each, name, depth) for each in found.projects], report.rows
            return [report.listed(each, name) for each in found.projects], report.rows

        data, rows = await run_in_thread(None, look)
        return await filtered(_answer(found, rows(data), most), jq, data)

    return package


def _answer(found: FoundProjects, rows: Iterator[str], most: int) -> ToolResult:
    """At most that many rows, and what wasn't looked at or couldn't be read."""
    lines = [*rows]
    shown = lines[:most]
    if len(lines) > most:
        shown.append(f"[{len(lines) - most} rows more; name a package, a smaller `path`, or a higher `most`]")
    if found.others:
        names = ", ".join(found.others[:_MAX_OTHERS]) + (", …" if len(found.others) > _MAX_OTHERS else "")
        shown.append(f"[not looked at, give it as `path`: {names}]")
    shown += [f"[{reason}]" for reason in found.unread]
    return ToolResult("", "", [Text("\n".join(shown))], details={"projects": len(found.projects)})
