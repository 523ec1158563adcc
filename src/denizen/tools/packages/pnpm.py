"""pnpm-lock.yaml, versions 5 to 9."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from denizen.tools.packages.blocks import read_blocks
from denizen.tools.packages.graph import Lock, Package, Wanted, table, text

_NEEDS = ("dependencies", "optionalDependencies")
_KINDS = {"": "dependencies", "dev": "devDependencies", "optional": "optionalDependencies"}
_KEY = re.compile(r"/?(@?[^@/(]+(?:/[^@/(]+)?)[@/]([^(_]+)")


def read_pnpm(source: str) -> Lock:
    """The packages by name and version, and what each project of the workspace asks for."""
    data = read_blocks(source)
    details, snapshots = table(data, "packages"), table(data, "snapshots")
    found = {_plain(key): (key, table(entry)) for key, entry in (snapshots or details).items()}
    packages = {plain: _package(plain, entry, found, table(details, key)) for plain, (key, entry) in found.items()}
    importers = table(data, "importers") or {".": data}
    return Lock(packages, {place.removeprefix("."): list(_wanted(each)) for place, each in importers.items()})


def _plain(key: str) -> str:
    """`/debug/2.6.9`, `/debug@2.6.9(supports-color@7.2.0)` and `debug@2.6.9` are all `debug@2.6.9`."""
    found = _KEY.match(key)
    return f"{found[1]}@{found[2]}" if found else key


def _package(key: str, entry: Mapping[str, Any], found: Mapping[str, Any], details: Mapping[str, Any]) -> Package:
    name, _, version = key.rpartition("@")
    needs = [_need(each, text(spec)) for kind in _NEEDS for each, spec in table(entry, kind).items()]
    public = "tarball" not in table(details, "resolution") and version[:1].isdecimal()
    return Package(name, version, [need for need in needs if need in found], public)


def _wanted(importer: Any) -> Iterator[Wanted]:
    for kind, key in _KINDS.items():
        for name, each in table(importer, key).items():
            spec = text(table(each).get("specifier")) or text(table(importer, "specifiers").get(name))
            yield Wanted(name, spec, kind, _need(name, text(each)))


def _need(name: str, version: str) -> str:
    """The key of what was settled on: `2.6.9`, `2.6.9(react@18.2.0)`, or another package's whole key."""
    return _plain(version if "@" in version.partition("(")[0][1:] or version[:1] == "/" else f"{name}@{version}")
