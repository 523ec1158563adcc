"""Who was at the files between a session's checkpoints."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from denizen.entries import AnyEntry, CheckpointEntry

BEFORE = "before"
"""The label of the checkpoint before an iteration's first change."""
AFTER = "after"
"""The label of the one behind its last."""

Pair = tuple[str, str]
"""A snapshot and a later one."""


@dataclass(slots=True)
class Stretch:
    """A part of a session, as its checkpoints tell it: the `first` and the `last` snapshot, and between which of them
    the agent was at the files (`ours`), between which somebody else may have been (`theirs`).

    `open`: what the agent did since the last one is in no snapshot yet.
    """

    first: str = ""
    last: str = ""
    ours: list[Pair] = field(default_factory=list)
    theirs: list[Pair] = field(default_factory=list)
    open: bool = False


def stretch_of(entries: Iterable[AnyEntry], first: str = "") -> Stretch:
    """What checkpoints tell of these entries; `first` is a snapshot from before them."""
    found = Stretch(first, first)
    for entry in entries:
        if isinstance(entry, CheckpointEntry):
            between = found.theirs if entry.label == BEFORE and not found.open else found.ours
            between += [(found.last, entry.snapshot)] if found.last not in ("", entry.snapshot) else []
            found.first = found.first or entry.snapshot
            found.last, found.open = entry.snapshot, entry.label == BEFORE
    return found
