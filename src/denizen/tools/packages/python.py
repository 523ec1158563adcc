"""Python's lock files: uv.lock, poetry.lock, pdm.lock, pylock.toml, Pipfile.lock, and pinned requirements."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from denizen.tools.packages.graph import Lock, Manifest, Package, Wanted, link, table, tables, text, words
from denizen.tools.packages.manifests import python_name, requirement
from denizen.tools.packages.public import is_public

_PIN = re.compile(r"={2,3}\s*([^\s,;*]+)$")
_FROM = frozenset({"git", "hg", "vcs", "path", "file", "directory", "url", "archive"})
"""How an entry says that its package is from no index."""
_VIA = re.compile(r"^\s*#\s+(?:via\s+)?(\S.*)$")

Found = tuple[Package, Sequence[tuple[str, str]]]


def read_uv(source: str) -> Lock:
    """uv.lock; the project itself is among its packages, with its groups."""
    packages = tables(tomllib.loads(source).get("package"))
    own = {_folder(each): list(_uv_wanted(each)) for each in packages if not _is_installed(each)}
    return Lock(link(_uv_packages(packages)), own)


def read_poetry(source: str) -> Lock:
    """poetry.lock; dependencies are a table of names."""
    packages = tables(tomllib.loads(source).get("package"))
    return Lock(
        link(
            (
                _package(each, public=not table(each, "source")),
                [(python_name(name), "") for name in table(each, "dependencies")],
            )
            for each in packages
        )
    )


def read_pdm(source: str) -> Lock:
    """pdm.lock; dependencies are requirements. A package stands there again for each set of its extras."""
    merged: dict[str, list[str]] = {}
    packages: dict[str, Package] = {}
    for each in tables(tomllib.loads(source).get("package")):
        package = _package(each, public=not _FROM.intersection(each))
        needs = merged.setdefault(package.name, [])
        needs += [name for line in words(each.get("dependencies")) for name in _names(line) if name != package.name]
        packages[package.name] = package
    return Lock(link((package, [(need, "") for need in merged[name]]) for name, package in packages.items()))


def read_pylock(source: str) -> Lock:
    """pylock.toml (PEP 751); whether it says who brings what is up to the tool that wrote it."""
    packages = tables(tomllib.loads(source).get("packages"))
    found = [
        (
            _package(each, public=is_public(each.get("index")) and not _FROM.intersection(each)),
            _needs(each.get("dependencies")),
        )
        for each in packages
    ]
    return Lock(link(found), graph=any(needs for _, needs in found))


def read_pipfile_lock(source: str) -> Lock:
    """Pipfile.lock, which doesn't say who brings what."""
    data = table(msgspec.json.decode(source))
    entries = [*table(data, "default").items(), *table(data, "develop").items()]
    found = [
        Package(python_name(name), text(each).removeprefix("=="), public=_is_indexed(each)) for name, each in entries
    ]
    return Lock(link((package, []) for package in found), graph=False)


def read_requirements(source: str) -> tuple[Manifest, Lock]:
    """A requirements file, as what is asked for and, as far as versions are pinned, as a lock file.

    Where comments say via whom a package came (as pip-compile and uv write them), only the others are asked for.
    """
    vias = list(_vias(source))
    brought = {name: [python_name(who) for who in via if _is_package(who)] for name, via in vias}
    direct = {name for name, via in vias if not via or not all(map(_is_package, via))}
    wanted = [each for line in _lines(source) for each in requirement(line)]
    pins = {each.name: pin[1] for each in wanted if (pin := _PIN.match(each.spec))}
    needs = {name: [(child, "") for child, parents in brought.items() if name in parents] for name in pins}
    lock = Lock(
        link((Package(name, version), needs[name]) for name, version in pins.items()), graph=any(brought.values())
    )
    return Manifest("", "", [each for each in wanted if each.name in direct]), lock


def _is_indexed(entry: Any) -> bool:
    """Whether a Pipfile.lock's entry is from the public index."""
    return not _FROM.intersection(table(entry)) and table(entry).get("index", "pypi") == "pypi"


def _uv_packages(packages: Sequence[Mapping[str, Any]]) -> Iterator[Found]:
    for each in packages:
        if _is_installed(each):
            extras = [need for group in table(each, "optional-dependencies").values() for need in _needs(group)]
            source = table(each, "source")
            public = is_public(source.get("registry")) and ("registry" in source or not source)
            yield _package(each, public=public), [*_needs(each.get("dependencies")), *extras]


def _folder(own: Mapping[str, Any]) -> str:
    """Where a project of the workspace is; empty: beside the lock file."""
    source = table(own, "source")
    return (text(source.get("virtual")) or text(source.get("editable"))).removeprefix(".")


def _uv_wanted(own: Mapping[str, Any]) -> Iterator[Wanted]:
    groups = [("", own.get("dependencies"))]
    groups += [(f"optional: {name}", group) for name, group in table(own, "optional-dependencies").items()]
    groups += [(name, group) for name, group in table(own, "dev-dependencies").items()]
    for kind, group in groups:
        for name, version in _needs(group):
            yield Wanted(name, "", kind, f"{name} {version}")


def _is_installed(package: Mapping[str, Any]) -> bool:
    """Whether it is a dependency; else it is the project itself, or a member of its workspace."""
    return not ({"virtual", "editable"} & table(package, "source").keys())


def _package(entry: Mapping[str, Any], *, public: bool) -> Package:
    return Package(python_name(text(entry.get("name"))), text(entry.get("version")), public=public)


def _needs(entries: Any) -> list[tuple[str, str]]:
    return [(python_name(text(each.get("name"))), text(each.get("version"))) for each in tables(entries)]


def _names(line: str) -> list[str]:
    return [wanted.name for wanted in requirement(line)]


def _lines(source: str) -> Iterator[str]:
    """Requirements without options, comments and hashes."""
    for line in source.replace("\\\n", " ").splitlines():
        plain = re.split(r"(?:^|\s)#|\s--", line.strip())[0].strip()
        if plain and not plain.startswith(("-", "[", "<")):
            yield plain


def _vias(source: str) -> Iterator[tuple[str, list[str]]]:
    """Each package with what its comments say it came via; nothing where there is no such comment."""
    name, via = "", list[str]()
    for line in source.replace("\\\n", " ").splitlines():
        if line[:1].strip() and (found := _names(next(_lines(line), ""))):
            if name:
                yield name, via
            name, via = found[0], list[str]()
        elif name and (said := _VIA.match(line)) and said[1] != "via":
            via += [who.strip() for who in said[1].split(",")]
    if name:
        yield name, via


def _is_package(who: str) -> bool:
    """Whether a `via` names a package; else it names a file that asks for it."""
    return not who.startswith("-") and "(" not in who and "/" not in who
