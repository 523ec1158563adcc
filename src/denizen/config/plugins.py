"""Objects that other packages provide through entry points."""

import functools
import sys
from importlib.metadata import Distribution, EntryPoint, EntryPoints, distributions
from typing import Any

from denizen.errors import ConfigError


def entry_points(group: str) -> EntryPoints:
    """The installed entry points of a group."""
    return EntryPoints(entry for entry in _installed((*sys.path,)) if entry.group == group)


@functools.cache
def _installed(_: tuple[str, ...]) -> list[EntryPoint]:
    """The entry points of all our groups. Other packages are skipped, because parsing all of them is slow."""
    ours: dict[str, Distribution] = {}
    for package in distributions():
        if "[denizen." in (package.read_text("entry_points.txt") or ""):
            ours.setdefault(package.name, package)  # the first on the path is imported
    return [entry for package in ours.values() for entry in package.entry_points]


def channel_entries() -> dict[str, EntryPoint]:
    """The installed kinds of channels, by name."""
    return {entry.name: entry for entry in sorted(entry_points("denizen.channels"))}


def load_entry_point(entry: EntryPoint, what: str) -> Any:
    """The object that it names. Raises ConfigError, naming `what`, for anything that its package raises."""
    try:
        return entry.load()
    except (Exception, SystemExit) as broken:  # the boundary to other packages: the user must act on any failure
        package = entry.dist.name if entry.dist else entry.value
        why = f"SystemExit {broken}".strip() if isinstance(broken, SystemExit) else broken
        raise ConfigError(
            f"The {what} {entry.name!r} of {package} can't be loaded: {why}; update or remove it."
        ) from broken
