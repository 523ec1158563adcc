"""yarn.lock: that of Yarn 1, which looks like YAML, and that of its successors, which is."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from denizen.tools.packages.blocks import read_blocks
from denizen.tools.packages.graph import Lock, Package, table, text
from denizen.tools.packages.public import is_public

_NEEDS = ("dependencies", "optionalDependencies")
_MARK = "# yarn lockfile v1"
_HEADING = re.compile(r"^([^\s#].*):$", re.MULTILINE)
_PAIR = re.compile(r"^( +)(\"[^\"\n]*\"|[^\s:#\"]+) ([^\s].*)$", re.MULTILINE)
_LOCAL = ("workspace:", "link:", "portal:", "file:", "patch:", "git", "http")


def read_yarn(source: str) -> Lock:
    """The packages, by all that was asked for and led to them: `debug@^2.6.9`, later `debug@npm:^2.6.9`."""
    entries = read_blocks(_as_blocks(source) if _MARK in source[:500] else source)
    entries.pop("__metadata", None)
    asked = {one: key for key in entries for one in key.split(", ")}
    asked |= {f"{name}@{spec}": key for one, key in asked.items() for name, _, spec in [one.partition("@npm:")] if spec}
    packages = {key: _package(key, table(entry), asked) for key, entry in entries.items() if "@workspace:" not in key}
    return Lock(packages, asked=asked)


def _as_blocks(source: str) -> str:
    """Yarn 1's own format as YAML."""
    quoted = _HEADING.sub(lambda line: '"' + line[1].replace('"', "") + '":', source)
    return _PAIR.sub(r"\1\2: \3", quoted)


def _package(key: str, entry: Mapping[str, Any], asked: Mapping[str, str]) -> Package:
    resolution = text(entry.get("resolution")) or key.partition(", ")[0]
    at = resolution.index("@", 1)
    public = is_public(entry.get("resolved")) and not resolution[at + 1 :].startswith(_LOCAL)
    return Package(resolution[:at], text(entry.get("version")), list(_needs(entry, asked)), public)


def _needs(entry: Mapping[str, Any], asked: Mapping[str, str]) -> Iterator[str]:
    for kind in _NEEDS:
        for name, spec in table(entry, kind).items():
            if key := asked.get(f"{name}@{text(spec)}"):
                yield key
