"""Dependencies as data, and as text: the direct ones, who brings what, and all about one package."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from denizen.errors import ToolRefused
from denizen.text.plural import counted, first_of
from denizen.tools.files.text import printable
from denizen.worlds.code.tools.packages.graph import Dependency, Package, Project
from denizen.worlds.code.tools.packages.manifests import python_name

MAX_NAMES = 20  # names in one line
MAX_WAYS = 3  # on which a package came
MAX_WAY_LENGTH = 10  # packages from a direct dependency to the one that it brings, as far as it is followed

Data = dict[str, Any]


def plain_name(project: Project, name: str) -> str:
    """A package's name as its ecosystem has it."""
    return python_name(name) if project.ecosystem == "PyPI" else name


def listed(project: Project, name: str) -> Data:
    """The direct dependencies of a project; only that of `name`, if given."""
    plain, packages = plain_name(project, name), project.lock.packages
    direct = [_wanted(each, packages.get(key)) for each, key in project.direct() if not name or each.name == plain]
    return _head(project) | {"dependencies": direct}


def tree(project: Project, name: str, depth: int) -> Data:
    """The packages that each direct dependency brings along, `depth` levels deep; or those of one package.

    A package's own needs are listed once; if it comes again, `note` says so.
    """
    packages = project.lock.packages
    listed: set[str] = set()

    def node(key: str, head: Data, above: tuple[str, ...] = ()) -> Data:
        package = packages.get(key)
        if package is None:
            return head
        head = head or {"name": printable(package.name), "version": printable(package.version)}
        if not package.needs:
            return head
        if key in above:
            return head | {"note": "cycle"}
        if key in listed:
            return head | {"note": "as above"}
        if len(above) + 1 >= depth:
            return head | {"note": f"brings {len(package.needs)}"}
        listed.add(key)
        return head | {"needs": [node(need, {}, (*above, key)) for need in package.needs]}

    if name:
        found = [node(key, {}) for key, each in packages.items() if each.name == plain_name(project, name)]
    else:
        found = [node(key, _wanted(wanted, packages.get(key))) for wanted, key in project.direct()]
    flat = project.locked_by and not project.lock.graph
    remark = f"{project.locked_by} doesn't say who brings what: only direct dependencies are shown" if flat else ""
    return _head(project) | {"dependencies": found, "remark": remark}


def info(projects: Sequence[Project], name: str) -> list[Data]:
    """All about the package of that name, in each project that has it. Raises ToolRefused if none has."""
    found: list[Data] = []
    for project in projects:
        plain, packages = plain_name(project, name), project.lock.packages
        asked = [(wanted, key) for wanted, key in project.direct() if wanted.name == plain]
        parents: dict[str, list[str]] = {}
        copies: dict[str, list[str]] = {}  # the keys of the package, those of one version together
        for key, package in packages.items():
            for need in package.needs:
                parents.setdefault(need, []).append(key)
            if package.name == plain:
                copies.setdefault(package.version, []).append(key)
        for keys in [*copies.values()] or ([[]] if asked else []):
            package = packages[keys[0]] if keys else Package(plain, "")
            needs = [packages[each] for each in package.needs]
            needed_by = {printable(packages[each].name) for key in keys for each in parents.get(key, ())}
            found.append(
                {
                    "name": printable(plain),
                    "version": printable(package.version),
                    "project": project.path,
                    "locked_by": project.locked_by,
                    "ecosystem": project.ecosystem,
                    "registry": None if package.registry is None else printable(package.registry),
                    "asked": [_wanted(wanted, package) for wanted, locked in asked if locked in keys or not keys],
                    "needs": [printable(f"{each.name} {each.version}".rstrip()) for each in needs],
                    "needed_by": sorted(needed_by),
                    "ways": _ways(project, keys, parents),
                }
            )
    if not found:
        names = {package.name for each in projects for package in each.lock.packages.values()}
        names |= {wanted.name for each in projects for wanted, _ in each.direct()}
        near = difflib.get_close_matches(name, map(printable, names), 3, 0.6)
        hint = f"; the nearest: {', '.join(near)}" if near else ""
        raise ToolRefused(f"no package {name!r} is declared or locked here{hint}")
    return found


def _ways(project: Project, keys: Sequence[str], parents: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The shortest ways to a package from the direct dependencies that bring it; the shortest of them first."""
    leads = dict.fromkeys(keys, "")  # each package with the next one on the way
    edge = list(keys)
    for _ in range(MAX_WAY_LENGTH):
        edge = [
            parent for child in edge for parent in parents.get(child, ()) if leads.setdefault(parent, child) == child
        ]
    direct = {key for _, key in project.direct() if key not in keys}
    ways: list[list[str]] = []
    for at in [each for each in leads if each in direct][:MAX_WAYS]:
        way: list[str] = []
        while at:
            way.append(printable(project.lock.packages[at].name))
            at = leads[at]
        ways.append(way)
    return ways


def _head(project: Project) -> Data:
    return {
        "path": project.path,
        "ecosystem": project.ecosystem,
        "name": printable(project.manifest.name),
        "version": printable(project.manifest.version),
        "locked_by": project.locked_by,
        "packages": len(project.lock.packages),
    }


def _wanted(wanted: Dependency, package: Package | None) -> Data:
    return {
        "name": printable(wanted.name),
        "version": printable(package.version) if package else "",
        "spec": printable(wanted.spec),
        "kind": printable(wanted.kind),
    }


def rows(data: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows of a list or tree: for each project a heading, and its dependencies below."""
    for project in data:
        who = f": {project['name']} {project['version']}".rstrip() if project["name"] else ""
        locked_by = project["locked_by"]
        lock = f"locked by {locked_by}: {counted(project['packages'], 'package')}" if locked_by else "not locked"
        yield f"{project['path']}{who} ({project['ecosystem']}; {lock})"
        yield from _nodes(project["dependencies"], 1, " (not locked)" if locked_by else "")
        if not project["dependencies"]:
            yield "  no dependencies"
        if project.get("remark"):
            yield f"  [{project['remark']}]"


def _nodes(nodes: Sequence[Mapping[str, Any]], level: int, unlocked: str = "") -> Iterator[str]:
    for node in nodes:
        marks = [mark for mark in (node.get("spec"), node.get("kind"), node.get("note")) if mark]
        version = f" {node['version']}" if node["version"] else unlocked
        yield f"{'  ' * level}{node['name']}{version}" + (f" ({'; '.join(marks)})" if marks else "")
        yield from _nodes(node.get("needs", []), level + 1)


def info_rows(data: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows of `info`."""
    for about in data:
        locked = f", locked by {about['locked_by']}" if about["version"] else ""
        yield f"{about['name']} {about['version']}".rstrip() + f" in {about['project']}{locked}"
        asked = [
            (each["spec"] or "any version") + (f" ({each['kind']})" if each["kind"] else "") for each in about["asked"]
        ]
        yield f"  asked for: {', '.join(asked)}" if asked else "  not asked for directly"
        yield from (f"  way: {' > '.join(way)}" for way in about["ways"])
        if about["needed_by"]:
            yield f"  needed by: {first_of(about['needed_by'], MAX_NAMES)}"
        if about["needs"]:
            yield f"  needs: {first_of(about['needs'], MAX_NAMES)}"
        if about["registry"] is None:
            yield "  from no registry"
        elif about["registry"]:
            yield f"  from {about['registry']}"
