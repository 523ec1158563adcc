"""Which dependencies are behind their latest release, and which are known to be unsafe: as data, and in words."""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from denizen.config.settings import PackagesSettings
from denizen.plural import counted
from denizen.tools.files.text import printable
from denizen.tools.packages import public
from denizen.tools.packages.advisories import Record, read_advisories, told
from denizen.tools.packages.fetch import Fetch, Unreachable, opened
from denizen.tools.packages.graph import Ecosystem, Package, Project, Wanted
from denizen.tools.packages.latest import latest
from denizen.tools.packages.manifests import ELSEWHERE
from denizen.tools.packages.osv import ask_osv
from denizen.tools.packages.report import plain_name, some
from denizen.tools.packages.versions import step

_ELSEWHERE = re.compile(rf"(?:{'|'.join(ELSEWHERE)}) |(?:file|link|portal|workspace|git[\w+]*|https?):|\.{{0,2}}/")
"""What a dependency asks for that no registry has."""

Data = dict[str, Any]
Identity = tuple[Ecosystem, str, str]


async def outdated(projects: Sequence[Project], name: str, settings: PackagesSettings) -> list[Data]:
    """The direct dependencies of each project beside their latest releases; with a name, that package."""
    async with opened(settings.timeout) as session:
        registries = {
            "PyPI": Fetch(session, settings.pypi or public.PYPI),
            "npm": Fetch(session, settings.npm or public.NPM),
            "crates.io": Fetch(session, settings.crates or public.CRATES),
            "Go": Fetch(session, settings.go or public.GO),
        }
        return [await _outdated(each, name, registries[each.ecosystem]) for each in projects]


async def audit(projects: Sequence[Project], name: str, settings: PackagesSettings) -> list[Data]:
    """The advisories that concern the locked packages of each project, as the OSV server knows them."""
    asked = {_identity(each, package): package for each in projects for package in _audited(each, name)}
    try:
        async with opened(settings.timeout) as session:
            questions = [(identity[0], package) for identity, package in asked.items()]
            answers = await ask_osv(Fetch(session, settings.osv or public.OSV), questions)
    except Unreachable as problem:
        return [_audit(each, name, {}) | {"problem": str(problem)} for each in projects]
    known = dict(zip(asked, answers, strict=True))
    return [_audit(each, name, known) for each in projects]


def audit_offline(projects: Sequence[Project], name: str, advisories: Path) -> list[Data]:
    """The same from a file or folder of advisories. Raises ToolRefused for what can't be read."""
    known = read_advisories(advisories)
    found = {
        _identity(each, package): known.concerning(each.ecosystem, package)
        for each in projects
        for package in _audited(each, name)
    }
    return [_audit(each, name, found) | {"advisories": known.count} for each in projects]


def outdated_rows(data: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows of `outdated`."""
    for project in data:
        head, rows = f"{project['path']} ({project['ecosystem']})", project["outdated"]
        if project["problem"]:
            yield f"{head}: {project['problem']}"
            yield f"  in use: {some(project['in_use'])}"
        else:
            yield f"{head}: {len(rows)} of {project['asked']} are behind"
        yield from (f"  {each['name']} {each['version']} -> {each['latest']}{_why(each)}" for each in rows)
        yield from (f"  {what}: {some(project[key])}" for key, what in _REST.items() if project[key])


def audit_rows(data: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows of `audit`."""
    for project in data:
        head = f"{project['path']} ({project['ecosystem']})"
        if project["problem"]:
            yield f"{head}: {project['problem']}; not checked: {counted(project['asked'], 'locked package')}"
            continue
        if not project["locked_by"]:
            yield f"{head}: not checked, as no lock file says which versions are used"
            continue
        count = sum(len(each["advisories"]) for each in project["unsafe"])
        yield f"{head}: {counted(count, 'advisory')} for {counted(project['asked'], 'locked package')}"
        for package in project["unsafe"]:
            yield f"  {package['name']} {package['version']}"
            yield from (f"    {_advised(each)}" for each in package["advisories"])
        if project["not_public"]:
            yield f"  not checked, because not from the public registry: {some(project['not_public'])}"


_REST = {
    "not_locked": "not locked; the latest",
    "unknown": "unknown to the registry",
    "not_public": "not asked about, because not from the public registry",
}


async def _outdated(project: Project, name: str, fetch: Fetch) -> Data:
    found = list(_compared(project, name))
    answers = await asyncio.gather(*(_latest(fetch, project, package) for _, package in found if package.public))
    told: Data = {"path": project.path, "ecosystem": project.ecosystem, "asked": len(answers), "problem": ""}
    told |= {"outdated": [], "current": [], **{key: [] for key in _REST}}
    told["in_use"] = [f"{printable(each.name)} {printable(each.version) or '(not locked)'}" for _, each in found]
    told["not_public"] = [printable(package.name) for _, package in found if not package.public]
    asked = [each for each in found if each[1].public]
    for (wanted, package), answer in zip(asked, answers, strict=True):
        if isinstance(answer, Unreachable):
            told["problem"] = str(answer)
            told["asked"] -= 1
        else:
            _sort_in(told, wanted, package, answer)
    return told


def _sort_in(told: Data, wanted: Wanted, package: Package, newest: str) -> None:
    """Put a package where it belongs."""
    name, behind = printable(package.name), step(package.version, newest)
    if not newest:
        told["unknown"].append(name)
    elif not package.version:
        told["not_locked"].append(f"{name} {newest}")
    elif not behind:
        told["current"].append(name)
    else:
        row = {"name": name, "version": printable(package.version), "latest": newest, "step": behind}
        told["outdated"].append(row | {"kind": printable(wanted.kind)})


def _compared(project: Project, name: str) -> Iterator[tuple[Wanted, Package]]:
    """The direct dependencies, or all packages of a name; without a version where they aren't locked."""
    packages = project.lock.packages
    if name:
        plain = plain_name(project, name)
        yield from ((Wanted(plain), each) for each in packages.values() if each.name == plain)
        return
    for wanted, key in project.direct():
        public = not _ELSEWHERE.match(wanted.spec)
        yield wanted, packages.get(key, Package(wanted.name, "", public=public))


async def _latest(fetch: Fetch, project: Project, package: Package) -> str | Unreachable:
    try:
        return printable(await latest(fetch, project.ecosystem, package.name))[:60]
    except Unreachable as problem:
        return problem


def _audit(project: Project, name: str, known: Mapping[Identity, Sequence[Record]]) -> Data:
    packages = {_identity(project, each): each for each in _audited(project, name)}
    unsafe = [
        {"name": printable(each.name), "version": printable(each.version), "advisories": msgspec.to_builtins(advised)}
        for identity, each in packages.items()
        if (advised := told(known.get(identity, ()), project.ecosystem, each))
    ]
    others = sorted({printable(each.name) for each in project.lock.packages.values() if not each.public})
    head: Data = {"path": project.path, "ecosystem": project.ecosystem, "locked_by": project.locked_by, "problem": ""}
    return head | {"asked": len(packages), "unsafe": unsafe, "not_public": others}


def _audited(project: Project, name: str) -> Iterator[Package]:
    """The packages that are asked about: what is locked, and public."""
    plain = plain_name(project, name)
    for package in project.lock.packages.values():
        if package.public and package.version and (not name or package.name == plain):
            yield package


def _identity(project: Project, package: Package) -> Identity:
    return project.ecosystem, package.name, package.version


def _why(row: Mapping[str, Any]) -> str:
    return f" ({'; '.join(filter(None, (row['step'], row['kind'])))})"


def _advised(advisory: Mapping[str, Any]) -> str:
    names = ", ".join([advisory["id"], *advisory["aliases"][:3]])
    fixed = f"; fixed in {advisory['fixed']}" if advisory["fixed"] else "; no fixed version is named"
    return f"{advisory['severity'] or 'not rated'} {names}: {advisory['summary'] or 'no summary'}{fixed}"
