"""Which dependencies have newer releases, and which are known to be unsafe: as data, and as text."""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from denizen.text.plural import counted, first_of
from denizen.tools.files.text import printable
from denizen.tools.packages.advisories import Advisory, read_advisories, worst_first
from denizen.tools.packages.clients import Clients, NoAnswer
from denizen.tools.packages.graph import Dependency, Package, Project, step
from denizen.tools.packages.manifests import ELSEWHERE
from denizen.tools.packages.report import MOST_NAMES, plain_name

_ELSEWHERE = re.compile(rf"(?:{'|'.join(ELSEWHERE)}) |(?:file|link|portal|workspace|git[\w+]*|https?):|\.{{0,2}}/")
"""What a dependency asks for that no registry has."""
_REST = {
    "not_locked": "not locked; the latest",
    "unknown": "unknown to the registry",
    "not_asked": "not asked about, because from elsewhere",
}

Data = dict[str, Any]


async def outdated(project: Project, name: str, clients: Clients) -> Data:
    """The direct dependencies of a project next to their latest releases; with a name, that package."""
    data: Data = {"path": project.path, "ecosystem": project.ecosystem, "problem": "", "outdated": [], "current": []}
    data |= {key: [] for key in _REST}
    packages = project.lock.packages
    if name:
        plain = plain_name(project, name)
        compared = [(Dependency(plain), each) for each in packages.values() if each.name == plain]
    else:
        compared: list[tuple[Dependency, Package]] = []
        for wanted, key in project.direct():  # without a version where they aren't locked
            registry = None if _ELSEWHERE.match(wanted.spec) else ""
            compared.append((wanted, packages.get(key, Package(wanted.name, "", registry=registry))))
    data["in_use"] = [f"{printable(each.name)} {printable(each.version) or '(not locked)'}" for _, each in compared]
    try:
        asks_of = await clients.default_registry(project.ecosystem) if compared else ""
    except NoAnswer as problem:
        return data | {"problem": str(problem), "asked": 0}
    asked = [each for each in compared if is_from(each[1], asks_of)]
    data["not_asked"] = [printable(package.name) for _, package in compared if not is_from(package, asks_of)]
    queries = (clients.latest(project.ecosystem, package.name) for _, package in asked)
    answers = await asyncio.gather(*queries, return_exceptions=True)
    data["asked"] = sum(isinstance(answer, str) for answer in answers)
    for (wanted, package), answer in zip(asked, answers, strict=True):
        plain = printable(package.name)
        if isinstance(answer, NoAnswer):
            data["problem"] = str(answer)
        elif isinstance(answer, BaseException):
            raise answer
        elif not answer:
            data["unknown"].append(plain)
        elif not package.version:
            data["not_locked"].append(f"{plain} {answer}")
        elif not (distance := step(project.ecosystem, package.version, answer)):
            data["current"].append(plain)
        else:
            row = {"name": plain, "version": printable(package.version), "latest": answer, "step": distance}
            data["outdated"].append(row | {"kind": printable(wanted.kind)})
    return data


def is_from(package: Package, asks_of: str) -> bool:
    """Whether a package may be named to the registry of that host (empty: one that the user configured)."""
    if not package.registry or not asks_of:
        return package.registry is not None
    return (urlsplit(package.registry).netloc or package.registry) == asks_of


async def audit(project: Project, name: str, clients: Clients) -> Data:
    """The advisories that concern the locked packages of a project, as its ecosystem's auditor knows them."""
    packages = _locked(project, name)
    try:
        asks_of = await clients.default_registry(project.ecosystem) if packages else ""
        packages = [each for each in packages if is_from(each, asks_of)]
        return _audited(project, packages, await clients.audit(project, packages))
    except NoAnswer as problem:
        return _audited(project, packages, []) | {"problem": str(problem)}


def audit_offline(projects: Sequence[Project], name: str, advisories: Path) -> list[Data]:
    """The same, of several projects, from a file or folder of advisories. Raises ToolRefused for what can't be read."""
    known = read_advisories(advisories)
    answers: list[Data] = []
    for project in projects:
        packages = _locked(project, name)
        found = [(each, about) for each in packages for about in known.concerning(project.ecosystem, each)]
        answers.append(_audited(project, packages, found) | {"advisories": known.count})
    return answers


def _locked(project: Project, name: str) -> list[Package]:
    """The locked packages that come from a registry, each version once; of one name, where one is given."""
    plain = plain_name(project, name)
    found = {
        (each.name, each.version): each
        for each in project.lock.packages.values()
        if each.registry is not None and each.version and (not name or each.name == plain)
    }
    return [*found.values()]


def _audited(project: Project, asked: Sequence[Package], found: Sequence[tuple[Package, Advisory]]) -> Data:
    unsafe: dict[tuple[str, str], list[Advisory]] = {}
    for package, advisory in found:
        unsafe.setdefault((package.name, package.version), []).append(advisory)
    keys = {(each.name, each.version) for each in asked}
    others = {each.name for each in project.lock.packages.values() if (each.name, each.version) not in keys}
    return {
        "path": project.path,
        "ecosystem": project.ecosystem,
        "locked_by": project.locked_by,
        "problem": "",
        "asked": len(asked),
        "unsafe": [
            {
                "name": printable(name),
                "version": printable(version),
                "advisories": msgspec.to_builtins(worst_first(each)),
            }
            for (name, version), each in unsafe.items()
        ],
        "not_asked": sorted(map(printable, others)),
    }


def outdated_rows(data: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows of `outdated`."""
    for project in data:
        head, rows = f"{project['path']} ({project['ecosystem']})", project["outdated"]
        if project["problem"]:
            yield f"{head}: {project['problem']}"
            yield f"  in use: {first_of(project['in_use'], MOST_NAMES)}"
        else:
            yield f"{head}: {len(rows)} of {project['asked']} are outdated"
        for each in rows:
            why = "; ".join(filter(None, (each["step"], each["kind"])))
            yield f"  {each['name']} {each['version']} -> {each['latest']} ({why})"
        yield from (f"  {what}: {first_of(project[key], MOST_NAMES)}" for key, what in _REST.items() if project[key])


def audit_rows(data: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows of `audit`."""
    for project in data:
        head = f"{project['path']} ({project['ecosystem']})"
        if project["problem"]:
            yield f"{head}: {project['problem']}; not checked: {counted(project['asked'], 'locked package')}"
            continue
        if not project["locked_by"]:
            yield f"{head}: not checked: no lock file says which versions are used"
            continue
        count = sum(len(each["advisories"]) for each in project["unsafe"])
        yield f"{head}: {counted(count, 'advisory')} for {counted(project['asked'], 'locked package')}"
        for package in project["unsafe"]:
            yield f"  {package['name']} {package['version']}"
            for each in package["advisories"]:
                names = ", ".join([each["id"], *each["aliases"][:3]])
                fixed = f"fixed in {each['fixed']}" if each["fixed"] else "no fixed version is named"
                yield f"    {each['severity'] or 'not rated'} {names}: {each['summary'] or 'no summary'}; {fixed}"
        if project["not_asked"]:
            yield f"  not checked, because from elsewhere: {first_of(project['not_asked'], MOST_NAMES)}"
