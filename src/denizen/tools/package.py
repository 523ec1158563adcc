"""`package`: what the projects of the workspace depend on; `package_check`: what is out of date, or known to be unsafe.

Two tools, because traits are a tool's and not a call's: the first one reads files and runs unasked, the other uses the
network, which the policy asks about.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from denizen.cancellation import run_in_thread
from denizen.config.settings import PackagesSettings
from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult
from denizen.ports import Tool, ToolContext, Traits
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import tool
from denizen.tools.packages import check, report
from denizen.tools.packages.graph import Project
from denizen.tools.packages.projects import Found, find_projects
from denizen.tools.programs.jq import filtered

Most = Annotated[int, Meta(ge=1, le=1000)]
Depth = Annotated[int, Meta(ge=1, le=20)]
Rows = Callable[[Sequence[Mapping[str, Any]]], Iterator[str]]

_MOST_OTHERS = 5
_ONLINE = "the registries are only asked by package_check: package_check {action}"


def package_tools(settings: PackagesSettings) -> list[Tool]:
    """The two tools."""
    return [_package(settings), _package_check(settings)]


def _package(settings: PackagesSettings) -> Tool:
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
            place = turn.workspace / settings.advisories.expanduser()
            data = await run_in_thread(None, check.audit_offline, found.projects, name, place)
            return await filtered(_answer(found, data, check.audit_rows, most), jq, data)
        if action in {"audit", "outdated"}:
            raise ToolRefused(_ONLINE.format(action=action))
        data, rows = await run_in_thread(None, _offline, found.projects, action, name, depth)
        return await filtered(_answer(found, data, rows, most), jq, data)

    return package


def _package_check(settings: PackagesSettings) -> Tool:
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
        """Ask the registries which direct dependencies are outdated, or which locked packages have advisories.

        Args:
            name: Package
            path: Project folder
            most: Rows shown
            jq: Filter on the structured result
        """
        stop = threading.Event()
        found = await run_in_thread(stop, find_projects, Workspace.of(turn), path, stop)
        if action == "audit":
            data = await check.audit(found.projects, name, settings)
            answer = _answer(found, data, check.audit_rows, most)
        else:
            data = await check.outdated(found.projects, name, settings)
            answer = _answer(found, data, check.outdated_rows, most)
        return await filtered(answer, jq, data)

    return package_check


def _offline(projects: Sequence[Project], action: str, name: str, depth: int) -> tuple[list[dict[str, Any]], Rows]:
    if action == "list":
        return report.listed(projects, name), report.rows
    if action == "tree":
        return report.tree(projects, name, depth), report.rows
    if not name:
        raise ToolRefused("package info needs the name of a package")
    return report.info(projects, name), report.info_rows


def _answer(found: Found, data: list[dict[str, Any]], rows: Rows, most: int) -> ToolResult:
    """The rows, as many as are wanted, and what has to be said beside them."""
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
