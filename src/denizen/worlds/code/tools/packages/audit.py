"""Which locked packages have advisories, by a file in OSV's format: as data, and as text."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from denizen.text.plural import counted, first_of
from denizen.tools.files.text import printable
from denizen.worlds.code.tools.packages.advisories import Advisory, read_advisories
from denizen.worlds.code.tools.packages.graph import Package, Project
from denizen.worlds.code.tools.packages.report import MAX_NAMES, plain_name

Data = dict[str, Any]


def audit(projects: Sequence[Project], name: str, path: Path) -> list[Data]:
    """The advisories about the locked packages of each project; about one package, if a name is given.

    `path` is a file or folder of advisories. Raises ToolRefused if it can't be read.
    """
    advisories = read_advisories(path)
    answers: list[Data] = []
    for project in projects:
        plain, locked = plain_name(project, name), [*project.lock.packages.values()]
        checked: dict[tuple[str, str], Package] = {}
        for package in locked:
            if package.registry is not None and package.version and (not name or package.name == plain):
                checked[package.name, package.version] = package
        unsafe = {key: advisories.concerning(project.ecosystem, package) for key, package in checked.items()}
        answers.append(
            {
                "path": project.path,
                "ecosystem": project.ecosystem,
                "locked_by": project.locked_by,
                "advisories": advisories.count,
                "checked": len(checked),
                "unsafe": [_row(*key, found) for key, found in unsafe.items() if found],
                "not_checked": sorted(
                    {printable(each.name) for each in locked if (each.name, each.version) not in checked}
                ),
            }
        )
    return answers


def _row(name: str, version: str, advisories: Sequence[Advisory]) -> Data:
    return {
        "name": printable(name),
        "version": printable(version),
        "advisories": msgspec.to_builtins(advisories),
    }


def audit_rows(data: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows of `audit`."""
    for project in data:
        head = f"{project['path']} ({project['ecosystem']})"
        if not project["locked_by"]:
            yield f"{head}: not checked: no lock file says which versions are used"
            continue
        count = sum(len(each["advisories"]) for each in project["unsafe"])
        yield f"{head}: {counted(count, 'advisory')} for {counted(project['checked'], 'locked package')}"
        for package in project["unsafe"]:
            yield f"  {package['name']} {package['version']}"
            for each in package["advisories"]:
                names = ", ".join([each["id"], *each["aliases"][:3]])
                fixed = f"fixed in {each['fixed']}" if each["fixed"] else "no fixed version is named"
                yield f"    {each['severity'] or 'not rated'} {names}: {each['summary'] or 'no summary'}; {fixed}"
        if project["not_checked"]:
            yield f"  not checked: {first_of(project['not_checked'], MAX_NAMES)}"
