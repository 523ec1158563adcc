"""Checkpoints: what the workspace was."""

from collections.abc import Collection
from typing import Protocol

from denizen.stretch import Stretch


class Checkpoints(Protocol):
    """What the workspace was: snapshots of its files, outside of it."""

    async def snapshot(self, label: str = "") -> str:
        """Keep the files as they are; the same files give the same id. Raises DenizenError."""
        ...

    async def ours_alone(self, done: Stretch) -> Collection[str]:
        """The paths that the agent changed. Raises DenizenError where somebody else changed one of them meanwhile."""
        ...

    async def restore(self, snapshot: str, *, expect: str = "", force: bool = False, only: Collection[str] = ()) -> str:
        """Make the files what they were, or `only` these paths; returns the id of what they were until now.

        Raises DenizenError where they differ from the snapshot `expect`, as the user changed them, unless forced.
        """
        ...
