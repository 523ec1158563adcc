"""package-lock.json and npm-shrinkwrap.json, versions 1 to 3."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from denizen.tools.packages.graph import Lock, Package, Wanted, table, text
from denizen.tools.packages.public import is_public

_NEEDS = ("dependencies", "optionalDependencies", "peerDependencies")
_KINDS = {"": "dependencies", "dev": "devDependencies", "optional": "optionalDependencies"}
_INSIDE = "node_modules/"


def read_package_lock(source: str) -> Lock:
    """The packages by their places in node_modules, which decide who gets which version."""
    data = table(msgspec.json.decode(source))
    entries = table(data, "packages") or dict(_version_1(table(data, "dependencies")))
    packages = {place: _package(place, entry, entries) for place, entry in entries.items() if _INSIDE in place}
    own = {place: list(_wanted(place, entry, entries)) for place, entry in entries.items() if _INSIDE not in place}
    return Lock(packages, own)


def _version_1(entries: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The entries of version 1, which lie in one another, as those of later versions."""
    waiting = [("", entries)]
    while waiting:
        above, entries = waiting.pop()
        for name, entry in entries.items():
            place = f"{above}{_INSIDE}{name}"
            yield place, {**table(entry), "dependencies": table(entry, "requires")}
            waiting.append((f"{place}/", table(entry, "dependencies")))


def _package(place: str, entry: Any, entries: Mapping[str, Any]) -> Package:
    name = text(table(entry).get("name")) or place.rpartition(_INSIDE)[2]
    needs = [key for kind in _NEEDS for need in table(entry, kind) if (key := _place(need, place, entries))]
    version = text(table(entry).get("version"))
    public = is_public(table(entry).get("resolved")) and version[:1].isdecimal()  # else it is a link, or an address
    return Package(name, version, list(dict.fromkeys(needs)), public)


def _wanted(place: str, entry: Any, entries: Mapping[str, Any]) -> Iterator[Wanted]:
    """What the project there, or the member of its workspace, asks for."""
    for kind, key in _KINDS.items():
        for name, spec in table(entry, key).items():
            yield Wanted(name, text(spec), kind, _place(name, place, entries))


def _place(name: str, at: str, entries: Mapping[str, Any]) -> str:
    """Where a package at `at` finds another: in its own node_modules, else in those above it. Empty: nowhere."""
    while True:
        place = f"{at}/{_INSIDE}{name}".removeprefix("/")
        if place in entries:
            return place
        if not at:
            return ""
        at = at.rpartition(f"/{_INSIDE}")[0] if f"/{_INSIDE}" in at else ""
