"""Objects that other packages provide through entry points."""

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from denizen.errors import ConfigError


def channel_entries() -> dict[str, EntryPoint]:
    """The installed kinds of channels, by name."""
    return {entry.name: entry for entry in sorted(entry_points(group="denizen.channels"))}


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
