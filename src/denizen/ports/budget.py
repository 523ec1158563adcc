"""The budget: what model calls may cost."""

from typing import Protocol


class Budget(Protocol):
    """Counts what model calls cost, and stops turns that would spend too much."""

    async def check(self, session_key: str, turn_usd: float) -> str:
        """Why no further call may be made in a turn that has spent `turn_usd` so far; empty: one may.

        Raises DenizenError when it can't tell.
        """

    async def charge(self, session_key: str, cost: float | None, model: str) -> str:
        """Count what a call cost (US dollars; None: nobody knows); returns what the user should know, if anything."""

    async def close(self) -> None:
        """Write pending charges."""
