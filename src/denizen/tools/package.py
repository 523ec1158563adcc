"""`package`: what the projects of the workspace depend on; `package_check`: what is outdated, or known to be unsafe.

Two tools, because traits are a tool's and not a call's: the first reads files and runs unasked, the other uses the
network, which the policy asks about.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from denizen.config.settings import PackagesSettings
from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult
from denizen.ports import Sandbox, Tool, ToolContext, Traits
from denizen.runtime.cancellation import run_in_thread
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import tool
from denizen.tools.packages import check, report
from denizen.tools.packages.clients import Clients
from denizen.tools.packages.projects import FoundProjects, find_projects
from denizen.tools.programs.jq import filtered

Most = Annotated[int, Meta(ge=1, le=1000)]
Depth = Annotated[int, Meta(ge=1, le=20)]
Rows = Callable[[Sequence[Mapping[str, Any]]], Iterator[str]]

_MOST_OTHERS = 5
_ONLINE = "the registries are only asked by package_check: package_check {action}"


def package_tools(settings: PackagesSettings, sandbox: Sandbox) -> list[Tool]:
    """The two tools; the ecosystems' clients run in `sandbox`."""

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
            action: list: direct dependencies. tree: who brings what. info: one package. audit, outdated: package_check
            name: Package
            path: Project folder
            depth: Levels of the tree
            most: Rows shown
            jq: Filter on the structured result
        """
        stop = threading.Event()
        found = await run_in_thread(stop, find_projects, Workspace.of(turn), path, stop)
        if action == "audit" and settings.advisories:
            file = turn.workspace / settings.advisories.expanduser()
            data = await run_in_thread(None, check.audit_offline, found.projects, name, file)
            return await filtered(_answer(found, data, check.audit_rows, most), jq, data)
        if action in {"audit", "outdated"}:
            raise ToolRefused(_ONLINE.format(action=action))
        if action == "list":
            data = [report.listed(each, name) for each in found.projects]
        elif action == "tree":
            data = await run_in_thread(None, lambda: [report.tree(each, name, depth) for each in found.projects])
        elif name:
            data = await run_in_thread(None, report.info, found.projects, name)
        else:
            raise ToolRefused("package info needs the name of a package")
        return await filtered(
            _answer(found, data, report.info_rows if action == "info" else report.rows, most), jq, data
        )

    @tool(traits=Traits.READS | Traits.NETWORK | Traits.UNTRUSTED | Traits.REPEATABLE)
    async def package_check(
        turn: ToolContext,
        action: Literal["outdated", "audit"],
        name: str = "",
        *,
        path: str = ".",
        most: Most = 100,
        jq: str = "",
    ) -> ToolResult:
        """Ask registries (by pip, npm, cargo, go) which direct dependencies are outdated, or which have advisories.

        Args:
            name: Package
            path: Project folder
            most: Rows shown
            jq: Filter on the structured result
        """
        stop = threading.Event()
        found = await run_in_thread(stop, find_projects, Workspace.of(turn), path, stop)
        clients = Clients(sandbox, settings, turn.workspace)
        if action == "audit":
            ask, rows = check.audit, check.audit_rows
        else:
            ask, rows = check.outdated, check.outdated_rows
        data = [await ask(each, name, clients) for each in found.projects]
        return await filtered(_answer(found, data, rows, most), jq, data)

    return [package, package_check]


def _answer(found: FoundProjects, data: list[dict[str, Any]], rows: Rows, most: int) -> ToolResult:
    """As many rows as are wanted, and what wasn't looked at or couldn't be read."""
    lines = list(rows(data))
    shown = lines[:most]
    if len(lines) > most:
        shown.append(f"[{len(lines) - most} rows more; name a package, a smaller `path`, or a higher `most`]")
    if found.others:
        names = ", ".join(found.others[:_MOST_OTHERS]) + (", …" if len(found.others) > _MOST_OTHERS else "")
        shown.append(f"[not looked at, give it as `path`: {names}]")
    shown += [f"[{reason}]" for reason in found.unread]
    failed = bool(data) and all(each.get("problem") for each in data)
    return ToolResult("", "", [Text("\n".join(shown))], is_error=failed, details={"projects": len(found.projects)})
