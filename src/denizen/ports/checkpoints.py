"""Checkpoints: what the workspace was."""

from collections.abc import Collection, Sequence
from typing import Protocol

from denizen.errors import DenizenError
from denizen.stretch import Pair, Stretch

_NAMED = 10
"""Paths that a message names."""
_ADVICE = "Put those changes elsewhere first."


def named(paths: Sequence[str]) -> str:
    """The first of many paths."""
    more = f" and {len(paths) - _NAMED:,} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more


class Conflict(DenizenError):
    """Restoring would overwrite what somebody else changed meanwhile, `paths`; nothing was touched.

    `force` is what whoever asked may do to have it all the same, where there is such a thing.
    """

    def __init__(self, paths: Sequence[str], force: str = "") -> None:
        advice = f"Keep a copy of what matters, or {force}: that can be undone, too." if force else _ADVICE
        super().__init__(
            f"Nothing was touched, as that would overwrite what was changed since the last checkpoint: {named(paths)}. "
            f"{advice}"
        )
        self.paths = paths


class Checkpoints(Protocol):
    """What the workspace was: snapshots of its files, outside of it."""

    async def snapshot(self, label: str = "") -> str:
        """Keep the files as they are; the same files give the same id. Raises DenizenError."""
        ...

    async def touched(self, pairs: Sequence[Pair]) -> Collection[str]:
        """The paths that changed between the snapshots of any of these pairs."""
        ...

    async def ours_alone(self, done: Stretch) -> Collection[str]:
        """The paths that the agent changed. Raises DenizenError where somebody else changed one of them meanwhile."""
        ...

    async def restore(self, snapshot: str, *, expect: str = "", force: bool = False, only: Collection[str] = ()) -> str:
        """Make the files what they were, or `only` these paths; returns the id of what they were until now.

        Raises DenizenError where they differ from the snapshot `expect`, as the user changed them, unless forced.
        """
        ...
