"""A project's dependencies: what its manifest asks for, which packages its lock file has, and the order of versions."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Ecosystem = Literal["PyPI", "npm", "crates.io", "Go"]  # as OSV names them

_NUMBERS = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True, slots=True)
class Dependency:
    """A direct dependency as it is declared; `kind` is empty for one to run, else `dev`, `optional: colour` and so on.

    `key` is that of the package which the lock file has for it; empty if it doesn't say.
    """

    name: str
    spec: str = ""
    kind: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A project's name, version and direct dependencies."""

    name: str = ""
    version: str = ""
    wanted: Sequence[Dependency] = ()


@dataclass(frozen=True, slots=True)
class Package:
    """A package at one version. `needs` are the keys of those it brings along.

    `registry` is the address of the one it comes from; empty: the ecosystem's own, or the lock file doesn't say; None:
    it comes from none (but from git, a folder or an address), so no advisory is about it.
    """

    name: str
    version: str
    needs: Sequence[str] = ()
    registry: str | None = ""


@dataclass(frozen=True, slots=True)
class LockFile:
    """A lock file: its packages by key.

    `wanted`: the direct dependencies of the projects that it holds for, if it names them: by folder (empty: its
    own), or by the crate's name; `asked`: keys by what was asked for (`debug@^2.6.9`). `graph` is False if it
    doesn't say who brings what.
    """

    packages: Mapping[str, Package]
    wanted: Mapping[str, Sequence[Dependency]] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)
    graph: bool = True


@dataclass(frozen=True, slots=True)
class Project:
    """A manifest and the lock file in force; `path` is the manifest's, or the lock file's if there is only that.

    `member` is how the lock file knows the project.
    """

    path: str
    ecosystem: Ecosystem
    manifest: Manifest
    locked_by: str = ""
    lock: LockFile = field(default_factory=lambda: LockFile({}))
    member: str = ""

    def direct(self) -> Iterator[tuple[Dependency, str]]:
        """The direct dependencies, each with the key of its locked package; empty if it isn't locked."""
        locked = self.lock.wanted.get(self.member, ())
        named: dict[str, list[str]] = {}
        for key, package in self.lock.packages.items():
            named.setdefault(package.name, []).append(key)
        own: dict[str, list[str]] = {}
        for each in locked:
            own.setdefault(each.name, []).extend([each.key] if each.key in self.lock.packages else [])
        for wanted in self.manifest.wanted or locked:
            if asked := self.lock.asked.get(f"{wanted.name}@{wanted.spec}", ""):
                yield wanted, asked
                continue
            keys = own.get(wanted.name) or named.get(wanted.name, [])
            # of several versions the one that begins as what was asked for
            start = _NUMBERS.search(wanted.spec)
            like = [key for key in keys if start and f"{self.lock.packages[key].version}.".startswith(f"{start[0]}.")]
            yield wanted, next(iter([*like, *keys]), "")


def link(found: Iterable[tuple[Package, Sequence[tuple[str, str]]]]) -> dict[str, Package]:
    """Packages by key, from packages and the names and versions (empty: any) of those that they need."""
    entries = list(found)
    keys = {f"{package.name} {package.version}": package.name for package, _ in entries}
    first = {name: key for key, name in reversed(keys.items())}

    def key(name: str, version: str) -> str:
        exact = f"{name} {version}"
        return exact if exact in keys else first.get(name, "")

    return {
        f"{package.name} {package.version}": Package(
            package.name, package.version, [found for need in needs if (found := key(*need))], package.registry
        )
        for package, needs in entries
    }


def parse_version(ecosystem: Ecosystem, version: str) -> Any:
    """A value that orders the versions of an ecosystem; None for what isn't a version."""
    from packaging.version import Version
    from univers.versions import GolangVersion, SemverVersion

    kind = {"PyPI": Version, "Go": GolangVersion}.get(ecosystem, SemverVersion)
    try:
        return kind(version)
    except ValueError:
        return None


def table(data: Any, *keys: str) -> dict[str, Any]:
    """The table there; empty if there is none."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def tables(data: Any) -> list[dict[str, Any]]:
    """The tables of a list; empty if there is none."""
    return [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []


def words(data: Any) -> list[str]:
    """The strings of a list; empty if there is none."""
    return [each for each in data if isinstance(each, str)] if isinstance(data, list) else []


def text(data: Any) -> str:
    """The string there, or a table's `version`; empty if there is none."""
    if isinstance(data, dict):
        data = data.get("version")
    return data if isinstance(data, str) else ""
