"""`package`: what the projects of the workspace depend on; `package_check`: what is out of date, or known to be unsafe.

Two tools, because traits are a tool's and not a call's: the first one reads files and runs unasked, the other uses the
network, which the policy asks about.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta

from denizen.config.settings import PackagesSettings
from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult
from denizen.ports import Tool, ToolContext, Traits
from denizen.tools.function import tool
from denizen.tools.packages import check, report
from denizen.tools.packages.graph import Project
from denizen.tools.packages.projects import Found, find_projects
from denizen.tools.thread import in_thread
from denizen.tools.workspace import Workspace

Most = Annotated[int, Meta(ge=1, le=1000)]
Depth = Annotated[int, Meta(ge=1, le=20)]
Rows = Callable[[Sequence[Mapping[str, Any]]], Iterator[str]]

_MOST_OTHERS = 10
_ONLINE = "the registries are only asked by package_check: package_check {action}"


def package_tools(settings: PackagesSettings) -> list[Tool]:
    """The two tools."""

    @tool(traits=Traits.READS | Traits.REPEATABLE)
    async def package(
        turn: ToolContext,
        action: Literal["list", "tree", "info", "audit", "outdated"],
        name: str = "",
        *,
        path: str = ".",
        depth: Depth = 3,
        most: Most = 100,
    ) -> ToolResult:
        """What the project depends on, from its manifests and lock files (Python, npm, cargo, go), without network.

        Args:
            action: list: direct dependencies. tree: who brings what. info: one package. audit, outdated: package_check
            name: Package
            path: Project folder
            depth: Levels of the tree
            most: Rows shown
        """
        stop = threading.Event()
        found = await in_thread(stop, find_projects, Workspace.of(turn), path, stop)
        if action == "audit" and settings.advisories:
            place = turn.workspace / settings.advisories.expanduser()
            data = await in_thread(None, check.audit_offline, found.projects, name, place)
            return _answer(found, data, check.audit_rows, most)
        if action in {"audit", "outdated"}:
            raise ToolRefused(_ONLINE.format(action=action))
        return await in_thread(None, _offline, found, action, name, (depth, most))

    @tool(traits=Traits.READS | Traits.NETWORK | Traits.UNTRUSTED | Traits.REPEATABLE)
    async def package_check(
        turn: ToolContext,
        action: Literal["outdated", "audit"],
        name: str = "",
        *,
        path: str = ".",
        most: Most = 100,
    ) -> ToolResult:
        """Ask the registries which direct dependencies are outdated, or which locked packages have advisories.

        Args:
            name: Package
            path: Project folder
            most: Rows shown
        """
        stop = threading.Event()
        found = await in_thread(stop, find_projects, Workspace.of(turn), path, stop)
        if action == "audit":
            return _answer(found, await check.audit(found.projects, name, settings), check.audit_rows, most)
        return _answer(found, await check.outdated(found.projects, name, settings), check.outdated_rows, most)

    return [package, package_check]


def _offline(found: Found, action: str, name: str, limits: tuple[int, int]) -> ToolResult:
    depth, most = limits
    if action == "info":
        if not name:
            raise ToolRefused("package info needs the name of a package")
        return _answer(found, report.info(found.projects, name), report.info_rows, most)
    if action == "list":
        return _answer(found, report.listed(found.projects, name), report.rows, most)
    return _answer(found, report.tree(found.projects, name, depth), report.rows, most, _flat(found.projects))


def _answer(found: Found, data: list[dict[str, Any]], rows: Rows, most: int, remarks: Iterable[str] = ()) -> ToolResult:
    """The rows, as many as are wanted, and what has to be said beside them."""
    lines = list(rows(data))
    shown = lines[:most]
    if len(lines) > most:
        shown.append(f"[{len(lines) - most} rows more; name a package, a smaller `path`, or a higher `most`]")
    shown += remarks
    if found.others:
        names = ", ".join(found.others[:_MOST_OTHERS]) + (", …" if len(found.others) > _MOST_OTHERS else "")
        shown.append(f"[not looked at, give it as `path`: {names}]")
    shown += [f"[{reason}]" for reason in found.unread]
    failed = bool(data) and all(each.get("problem") for each in data)
    return ToolResult("", "", [Text("\n".join(shown))], is_error=failed, details={"projects": data})


def _flat(projects: Sequence[Project]) -> Iterator[str]:
    """What a tree can't tell."""
    for project in projects:
        if project.locked_by and not project.lock.graph:
            yield f"[{project.locked_by} doesn't say who brings what: only direct dependencies are shown]"
