"""Cargo.lock."""

import tomllib

from denizen.tools.packages.graph import Lock, Package, Wanted, link, tables, text, words
from denizen.tools.packages.public import is_public


def read_cargo_lock(source: str) -> Lock:
    """The packages of a crate or workspace; its own crates, which have no source, say what they want."""
    entries = tables(tomllib.loads(source).get("package"))
    needs = [[_need(line) for line in words(each.get("dependencies"))] for each in entries]
    found = [
        (
            Package(text(each.get("name")), text(each.get("version")), public=is_public(each["source"])),
            needed,
        )
        for each, needed in zip(entries, needs, strict=True)
        if "source" in each
    ]
    own = {
        text(each.get("name")): [Wanted(name, "", "", f"{name} {version}") for name, version in needed]
        for each, needed in zip(entries, needs, strict=True)
        if "source" not in each
    }
    return Lock(link(found), own)


def _need(line: str) -> tuple[str, str]:
    """`name`, `name version` or `name version (source)`: as much as tells it from others."""
    name, version, *_ = [*line.split(" "), "", ""]
    return name, version
