"""Checkpoints: what the workspace was, and who changed it between them."""

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

import msgspec

from denizen.entries import AnyEntry, CheckpointEntry
from denizen.errors import DenizenError
from denizen.text.plural import first_of

BEFORE = "before"
"""The label of the checkpoint before an iteration's first change."""
AFTER = "after"
"""The label of the one after its last."""

Pair = tuple[str, str]
"""A snapshot and a later one."""

_MAX_NAMED_FILES = 10
"""Paths that a message names."""
_ADVICE = "Put those changes elsewhere first."


def named(paths: Sequence[str]) -> str:
    """The first of many paths."""
    return first_of(paths, _MAX_NAMED_FILES)


class Conflict(DenizenError):
    """Restoring would overwrite `paths` that somebody else changed meanwhile; nothing was touched.

    `force` says how the person can do it all the same, if they can.
    """

    def __init__(self, paths: Sequence[str], force: str = "") -> None:
        advice = f"Keep a copy of what matters, or {force}: that can be undone, too." if force else _ADVICE
        super().__init__(
            f"Nothing was touched: it would overwrite changes made since the last checkpoint: {named(paths)}. {advice}"
        )
        self.paths = paths


class CheckpointSpan(msgspec.Struct):
    """A part of a session between the snapshots `first` and `last`: the agent changed files between the pairs in
    `ours`, somebody else may have between those in `theirs`.

    `open`: the agent's changes since the last snapshot are in no snapshot yet.
    """

    first: str = ""
    last: str = ""
    ours: list[Pair] = msgspec.field(default_factory=list)
    theirs: list[Pair] = msgspec.field(default_factory=list)
    open: bool = False


def span_of(entries: Iterable[AnyEntry], first: str = "") -> CheckpointSpan:
    """The span of these entries' checkpoints; `first` is a snapshot from before them."""
    span = CheckpointSpan(first, first)
    for entry in entries:
        if isinstance(entry, CheckpointEntry):
            between = span.theirs if entry.label == BEFORE and not span.open else span.ours
            between += [(span.last, entry.snapshot)] if span.last not in ("", entry.snapshot) else []
            span.first = span.first or entry.snapshot
            span.last, span.open = entry.snapshot, entry.label == BEFORE
    return span


class Checkpoints(Protocol):
    """Snapshots of the workspace's files, kept outside of it."""

    async def snapshot(self, label: str = "") -> str:
        """Keep the files as they are; the same files give the same id. Raises DenizenError."""

    async def touched(self, pairs: Sequence[Pair]) -> Collection[str]:
        """The paths that changed between the snapshots of any of these pairs."""

    async def ours_alone(self, done: CheckpointSpan) -> Collection[str]:
        """The paths that the agent changed. Raises DenizenError if somebody else changed one of them meanwhile."""

    async def restore(self, snapshot: str, *, expect: str = "", force: bool = False, only: Collection[str] = ()) -> str:
        """Make the files what they were, or `only` these paths; returns the id of what they were until now.

        Raises DenizenError if they differ from the snapshot `expect`, unless forced: the user changed them.
        """
