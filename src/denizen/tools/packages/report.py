"""Dependencies as data, and in words: the direct ones, who brings what, and all about one package."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from denizen.errors import ToolRefused
from denizen.plural import counted
from denizen.tools.files.text import printable
from denizen.tools.packages.graph import Package, Project, Wanted
from denizen.tools.packages.manifests import python_name

MOST_NAMES = 20
"""Names in one line."""
MOST_WAYS = 3
"""On which a package came."""
LONGEST_WAY = 10
"""Packages between a direct dependency and the one that it brings, as far as the way is told."""

Data = dict[str, Any]


def listed(projects: Sequence[Project], name: str) -> list[Data]:
    """The direct dependencies of each project; of one name, where one is given."""
    return [_head(each) | {"dependencies": [*_dependencies(each, name)]} for each in projects]


def tree(projects: Sequence[Project], name: str, depth: int) -> list[Data]:
    """What each direct dependency brings along, `depth` levels of it; or what the package of a name brings.

    A package's own needs are told once; where it comes again, `note` says so.
    """
    return [
        _head(each) | {"dependencies": [*_Tree(each.lock.packages, depth).of(each, name)], "remark": _remark(each)}
        for each in projects
    ]


def info(projects: Sequence[Project], name: str) -> list[Data]:
    """What is known of the package of that name, in each project that has it. Raises ToolRefused where none has."""
    found = [about for each in projects for about in _about(each, name)]
    if not found:
        raise ToolRefused(f"no package {name!r} is declared or locked here{_nearest(projects, name)}")
    return found


def rows(data: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows of a list or tree: for each project a heading, and its dependencies below."""
    for project in data:
        yield _heading(project)
        yield from _rows(project["dependencies"], 1, " (not locked)" if project["locked_by"] else "")
        if not project["dependencies"]:
            yield "  no dependencies"
        if project.get("remark"):
            yield f"  [{project['remark']}]"


def info_rows(data: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows of `info`."""
    for about in data:
        yield f"{_label(about)} in {about['project']}" + (
            f", locked by {about['locked_by']}" if about["version"] else ""
        )
        yield f"  asked for: {_asked(about['asked'])}" if about["asked"] else "  not asked for directly"
        yield from (f"  way: {' > '.join(way)}" for way in about["ways"])
        yield from (
            f"  {what}: {some(about[what.replace(' ', '_')])}"
            for what in ("needed by", "needs")
            if about[what.replace(" ", "_")]
        )
        if not about["public"]:
            yield "  not from the public registry"


def _head(project: Project) -> Data:
    return {
        "path": project.path,
        "ecosystem": project.ecosystem,
        "name": printable(project.manifest.name),
        "version": printable(project.manifest.version),
        "locked_by": project.locked_by,
        "packages": len(project.lock.packages),
    }


def _dependencies(project: Project, name: str) -> Iterator[Data]:
    for wanted, key in project.direct():
        if not name or wanted.name == plain_name(project, name):
            yield _wanted(wanted, project.lock.packages.get(key))


def _wanted(wanted: Wanted, package: Package | None) -> Data:
    return {
        "name": printable(wanted.name),
        "version": printable(package.version) if package else "",
        "spec": printable(wanted.spec),
        "kind": printable(wanted.kind),
    }


def _remark(project: Project) -> str:
    flat = project.locked_by and not project.lock.graph
    return f"{project.locked_by} doesn't say who brings what: only direct dependencies are shown" if flat else ""


@dataclass(slots=True)
class _Tree:
    packages: Mapping[str, Package]
    depth: int
    told: set[str] = field(default_factory=set)

    def of(self, project: Project, name: str) -> Iterator[Data]:
        if name:
            keys = [key for key, each in self.packages.items() if each.name == plain_name(project, name)]
            yield from (self._node(key, {}, ()) for key in keys)
            return
        for wanted, key in project.direct():
            yield self._node(key, _wanted(wanted, self.packages.get(key)), ())

    def _node(self, key: str, head: Data, above: tuple[str, ...]) -> Data:
        package = self.packages.get(key)
        if package is None:
            return head
        node = head or {"name": printable(package.name), "version": printable(package.version)}
        if not package.needs:
            return node
        if key in above:
            return node | {"note": "cycle"}
        if key in self.told:
            return node | {"note": "as above"}
        if len(above) + 1 >= self.depth:
            return node | {"note": f"brings {len(package.needs)}"}
        self.told.add(key)
        return node | {"needs": [self._node(need, {}, (*above, key)) for need in package.needs]}


def _about(project: Project, name: str) -> Iterator[Data]:
    plain, packages = plain_name(project, name), project.lock.packages
    asked = [(wanted, key) for wanted, key in project.direct() if wanted.name == plain]
    parents = _parents(packages)
    for keys in _copies(packages, plain) or ([[]] if asked else []):
        package = packages[keys[0]] if keys else Package(plain, "")
        yield {
            "name": printable(plain),
            "version": printable(package.version),
            "project": project.path,
            "locked_by": project.locked_by,
            "ecosystem": project.ecosystem,
            "public": package.public,
            "asked": [_wanted(wanted, package) for wanted, settled in asked if settled in keys or not keys],
            "needs": [_label(_named(packages[need])) for need in package.needs],
            "needed_by": sorted({printable(packages[each].name) for key in keys for each in parents.get(key, ())}),
            "ways": _ways(project, keys, parents),
        }


def _copies(packages: Mapping[str, Package], name: str) -> list[list[str]]:
    """The keys of a package, those of one version together."""
    copies: dict[str, list[str]] = {}
    for key, package in packages.items():
        if package.name == name:
            copies.setdefault(package.version, []).append(key)
    return list(copies.values())


def _named(package: Package) -> Data:
    return {"name": printable(package.name), "version": printable(package.version)}


def _parents(packages: Mapping[str, Package]) -> dict[str, list[str]]:
    """Who needs each package."""
    parents: dict[str, list[str]] = {}
    for key, package in packages.items():
        for need in package.needs:
            parents.setdefault(need, []).append(key)
    return parents


def _ways(project: Project, keys: Sequence[str], parents: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The shortest ways to a package from the direct dependencies that bring it; the shortest of them, first."""
    leads = dict.fromkeys(keys, "")
    edge = list(keys)
    for _ in range(LONGEST_WAY):
        edge = [
            parent for child in edge for parent in parents.get(child, ()) if leads.setdefault(parent, child) == child
        ]
    direct = {settled for _, settled in project.direct() if settled not in keys}
    starts = [each for each in leads if each in direct][:MOST_WAYS]
    return [[printable(project.lock.packages[each].name) for each in _way(leads, start)] for start in starts]


def _way(leads: Mapping[str, str], start: str) -> Iterator[str]:
    while start:
        yield start
        start = leads[start]


def plain_name(project: Project, name: str) -> str:
    """A package's name as its ecosystem has it."""
    return python_name(name) if project.ecosystem == "PyPI" else name


def _nearest(projects: Sequence[Project], name: str) -> str:
    names = {package.name for each in projects for package in each.lock.packages.values()}
    names |= {wanted.name for each in projects for wanted, _ in each.direct()}
    near = difflib.get_close_matches(name, map(printable, names), 3, 0.6)
    return f"; the nearest: {', '.join(near)}" if near else ""


def _heading(project: Mapping[str, Any]) -> str:
    who = f": {project['name']} {project['version']}".rstrip() if project["name"] else ""
    lock = (
        f"locked by {project['locked_by']}: {counted(project['packages'], 'package')}"
        if project["locked_by"]
        else "not locked"
    )
    return f"{project['path']}{who} ({project['ecosystem']}; {lock})"


def _rows(nodes: Sequence[Mapping[str, Any]], level: int, unlocked: str = "") -> Iterator[str]:
    for node in nodes:
        marks = [mark for mark in (node.get("spec"), node.get("kind"), node.get("note")) if mark]
        version = f" {node['version']}" if node["version"] else unlocked
        yield f"{'  ' * level}{node['name']}{version}" + (f" ({'; '.join(marks)})" if marks else "")
        yield from _rows(node.get("needs", []), level + 1)


def _label(node: Mapping[str, Any]) -> str:
    return f"{node['name']} {node['version']}".rstrip()


def _asked(asked: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{each['spec'] or 'any version'}{_bracketed(each['kind'])}" for each in asked)


def some(names: Sequence[str]) -> str:
    """Names in one line."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _bracketed(text: str) -> str:
    return f" ({text})" if text else ""
