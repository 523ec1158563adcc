"""Deletes sessions and sums that are older than `[retention]` allows, in small batches."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from typing import NamedTuple

from denizen.config.settings import RetentionSettings
from denizen.errors import SessionHeld, SessionUnknown
from denizen.ports import SessionInfo, SessionStore
from denizen.runtime.clock import Clock
from denizen.sessions.spend import Sums

_BATCH = 50
_PAUSE_S = 0.1
"""The pause between batches, in which others can write."""
_DAY_S = 86_400.0


OpenSessions = Callable[[], Awaitable[Collection[str]]]
"""The keys of sessions with a message that isn't answered yet."""


class Pruned(NamedTuple):
    """The numbers of deleted sessions and of deleted sums of spending."""

    sessions: int
    sums: int


async def prune(
    store: SessionStore,
    sums: Sums | None,
    settings: RetentionSettings,
    clock: Clock,
    open_sessions: OpenSessions | None = None,
) -> Pruned:
    """Delete what `settings` no longer keep, except for sessions that are open or wait for an answer.

    Raises DenizenError if the disk or the database fails.
    """
    sessions = sums_deleted = 0
    now = clock.now().timestamp()
    async for info, unused_since in _candidates(store, settings, now, clock, open_sessions):
        try:
            await store.remove(info.key, unused_since=unused_since)
            sessions += 1
        except (SessionHeld, SessionUnknown):  # used or removed meanwhile
            continue
    if settings.spend_days and sums:
        while deleted := await asyncio.to_thread(sums.forget, settings.spend_days, _BATCH):
            sums_deleted += deleted
            await clock.sleep(_PAUSE_S)
    return Pruned(sessions, sums_deleted)


async def _candidates(
    store: SessionStore, settings: RetentionSettings, now: float, clock: Clock, open_sessions: OpenSessions | None
) -> AsyncGenerator[tuple[SessionInfo, float]]:
    """The sessions to delete, each with the time after which it must not have been used."""
    never = float("-inf")
    said_before = now - settings.session_days * _DAY_S if settings.session_days else never
    empty_before = now - settings.empty_session_days * _DAY_S if settings.empty_session_days else never
    before = max(said_before, empty_before)
    while before > never and (page := await store.page(_BATCH, before)):
        unanswered = await open_sessions() if open_sessions else ()
        for info in page:
            if info.stop_reason == "parked" or info.key in unanswered:
                continue
            is_empty = not (info.title or info.stop_reason or info.earlier)
            limit = max(said_before, empty_before) if is_empty else said_before
            if max(info.used, info.updated) < limit:
                yield info, limit
        before = page[-1].used
        await clock.sleep(_PAUSE_S)
