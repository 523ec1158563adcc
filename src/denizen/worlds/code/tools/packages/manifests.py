"""Reads manifests: pyproject.toml, Pipfile, package.json, Cargo.toml and go.mod."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import msgspec

from denizen.worlds.code.tools.packages.graph import Dependency, Manifest, table, text, words

SOURCE_KEYS = ("path", "git", "url", "file")  # how a manifest says that a dependency is from no registry
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(\[[^\]]*\])?\s*\(?([^;@#()]*)(?:@\s*([^\s;]+))?")
_GO_LINE = re.compile(r"^[ \t]*(?:require[ \t]+)?([^\s()/][^\s()]*)[ \t]+(v[^\s/]+)[ \t]*(// indirect)?", re.MULTILINE)
_GO_REQUIRES = re.compile(r"^require[ \t]*\(([^)]*)(?:\)|\Z)|^require[ \t]+[^\s(].*$", re.MULTILINE)

_GO_LOCAL = re.compile(r"^[ \t]*(?:replace[ \t]+)?([^\s()]+)(?:[ \t]+v\S+)?[ \t]+=>[ \t]+(\.{0,2}/\S*)", re.MULTILINE)


def read_pyproject(source: str) -> Manifest:
    """`project`, dependency groups, and Poetry's and PDM's own tables."""
    data = tomllib.loads(source)
    project, poetry = table(data, "project"), table(data, "tool", "poetry")
    groups = [("", project.get("dependencies"))]
    groups += [(f"optional: {name}", lines) for name, lines in table(project, "optional-dependencies").items()]
    groups += [*table(data, "dependency-groups").items(), *table(data, "tool", "pdm", "dev-dependencies").items()]
    groups.append(("dev", table(data, "tool", "uv").get("dev-dependencies")))
    wanted = [found for kind, lines in groups for line in words(lines) for found in requirement(line, kind)]
    wanted += [*_versions(poetry, "dependencies"), *_versions(poetry, "dev-dependencies", "dev")]
    for name, group in table(poetry, "group").items():
        wanted += _versions(group, "dependencies", name)
    name, version = (text(project.get(key)) or text(poetry.get(key)) for key in ("name", "version"))
    return Manifest(name, version, wanted)


def python_name(name: str) -> str:
    """A Python package's name as indexes have it: `Zope.Interface` is `zope-interface`."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement(line: str, kind: str = "") -> Iterator[Dependency]:
    """The dependency that a line such as `requests[socks]>=2; python_version > "3"` declares."""
    if found := _REQUIREMENT.match(line):
        yield Dependency(python_name(found[1]), (found[4] or found[3]).strip(), kind)


def read_pipfile(source: str) -> Manifest:
    """Packages to run and for development."""
    data = tomllib.loads(source)
    return Manifest("", "", [*_versions(data, "packages"), *_versions(data, "dev-packages", "dev")])


def read_package_json(source: str) -> Manifest:
    """Dependencies of all four kinds."""
    data = table(msgspec.json.decode(source))
    wanted = [
        *_versions(data, "dependencies", python=False),
        *_versions(data, "devDependencies", "dev", python=False),
        *_versions(data, "optionalDependencies", "optional", python=False),
        *_versions(data, "peerDependencies", "peer", python=False),
    ]
    optional = {each.name for each in wanted if each.kind == "optional"}  # npm repeats them among the others
    kept = [each for each in wanted if each.kind or each.name not in optional]
    return Manifest(text(data.get("name")), text(data.get("version")), kept)


def read_cargo(source: str) -> Manifest:
    """A crate's dependencies, also of single targets; of a workspace, those its crates share."""
    data = tomllib.loads(source)
    package = table(data, "package")
    kinds = {"": "dependencies", "dev": "dev-dependencies", "build": "build-dependencies"}
    wanted = [
        each
        for part in [data, *table(data, "target").values()]
        for kind, key in kinds.items()
        for each in _versions(part, key, kind, python=False)
    ]
    shared = _versions(table(data, "workspace"), "dependencies", "workspace", python=False)
    return Manifest(text(package.get("name")), text(package.get("version")), [*wanted, *shared])


def read_go_mod(source: str) -> Manifest:
    """A module's requirements; those of other modules are `indirect`."""
    found = re.search(r"^module\s+(\S+)", source, re.MULTILINE)
    lines = "\n".join(match[1] or match[0] for match in _GO_REQUIRES.finditer(source))
    local = dict(_GO_LOCAL.findall(source))
    wanted = [
        Dependency(name, f"path {local[name]}" if name in local else version, "indirect" if later else "")
        for name, version, later in _GO_LINE.findall(lines)
    ]
    return Manifest(found[1] if found else "", "", wanted)


def _versions(data: Any, key: str, kind: str = "", *, python: bool = True) -> Iterator[Dependency]:
    """The entries of a table of names and versions."""
    for name, value in table(data, key).items():
        if python and name == "python":
            continue
        real = python_name(name) if python else text(table(value).get("package")) or name  # Cargo may rename a crate
        places = (f"{how} {place}" for how in SOURCE_KEYS if isinstance(place := table(value).get(how), str))
        spec = text(value) or next(places, "")  # the version that is asked for, or where else it comes from
        yield Dependency(real, spec, kind or ("optional" if table(value).get("optional") is True else ""))
