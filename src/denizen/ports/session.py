"""Sessions: one conversation each, and the store that keeps them."""

import math
from collections.abc import Sequence
from typing import Protocol

import msgspec

from denizen.entries import AnyEntry


class Session(Protocol):
    """One conversation, open for writing by this process alone.

    `entries` are those from the first to the head, oldest first; `head` is the last one's id ("" when empty). Ids are
    unique in a session and never used again, so whoever has read up to a head finds what is new by comparing one id:
    `entries[count - 1].id == head` means that `entries[count:]` follow it. Anything else about the list may differ from
    one look to the next.
    """

    key: str
    head: str
    entries: Sequence[AnyEntry]
    warnings: Sequence[str]

    @property
    def moved(self) -> bool:
        """Whether the head was moved here, or the session forked, and nothing was written since.

        Calls left open then belong to another branch.
        """

    async def append(self, entry: AnyEntry, *, expect_head: str | None = None) -> str:
        """Write the entry after the head and return its id; on disk on return.

        Messages of the user, `started`, `parked` and `answer` are synced, too: they survive the machine's death, and
        with them it is noticed that the lock was lost. Raises SessionError then, and for all that follows, when the
        head isn't `expect_head`, and when the disk refuses.
        """

    async def move_head(self, to: str) -> None:
        """Continue from entry `to`; nothing is deleted."""

    async def sync(self) -> None:
        """All that was written survives the machine's death."""

    async def lost(self) -> None:
        """Return once another process has the session, or may have it: nothing more is written here."""

    async def close(self) -> None:
        """Give the lock back."""


class Talk(msgspec.Struct, frozen=True):
    """An earlier talk of a session that began anew: a branch that ends with the entry `head`."""

    title: str
    head: str


class SessionInfo(msgspec.Struct, frozen=True):
    """A line of the index. `updated` is seconds since the epoch; `tokens` is the context after the last call.

    `stop_reason` is how the last turn ended, or `parked` or `unfinished` where it hasn't. `earlier` are the talks
    before the one that the title is of, the latest first. `used` is when the session was last opened for writing, or
    closed: pages are in this order.
    """

    key: str
    title: str = ""
    workspace: str = ""
    profile: str = ""
    updated: float = 0.0
    bytes: int = 0
    model: str = ""
    tokens: int = 0
    stop_reason: str = ""
    cost_usd: float = 0.0
    earlier: Sequence[Talk] = ()
    used: float = 0.0


class SessionStore(Protocol):
    """Where sessions last."""

    async def open(self, key: str, *, workspace: str = "", profile: str = "") -> Session:
        """The session, open for writing; made if new. Raises SessionError when another process has it."""

    async def read(self, key: str) -> Sequence[AnyEntry]:
        """The entries from the first to the head, without a lock. Raises SessionError for an unknown key."""

    async def fork(self, key: str, to: str, *, at: str = "") -> None:
        """A new session `to` that begins with all of `key` up to entry `at` (default: its head)."""

    async def list(self) -> Sequence[SessionInfo]:
        """All sessions, the latest first."""

    async def page(self, limit: int, before: float = math.inf) -> Sequence[SessionInfo]:
        """The `limit` sessions that were last `used` before that time, the latest first; all of the last moment.

        A page costs the same however many sessions there are. Fewer than `limit`: there are no more.
        """

    async def remove(self, key: str, *, unused_since: float = math.inf) -> None:
        """Delete a session for good.

        Raises SessionHeld while a process has it open, and where something was written since `unused_since`.
        """
