"""Summaries of long sessions, made in the background between turns."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from denizen.engine.ask import RETRY_SUMMARY_GROWTH
from denizen.engine.callback_host import CallbackHost
from denizen.engine.compact import compaction
from denizen.engine.next_request import ReadSession
from denizen.engine.record import AgentRecord
from denizen.engine.session_state import UNSUMMARISED, no_summary
from denizen.engine.turn import Turn, TurnOptions
from denizen.entries import AnyEntry, AssistantEntry, CompactionEntry, StateEntry, UserEntry
from denizen.errors import DenizenError
from denizen.ports import SURELY_HELD, Session

MAX_MESSAGES = 20
"""Messages of the user and replies after which a session is summarised."""
FULL_SHARE = 0.75
"""The share of the model's window that makes a session long with fewer messages."""
TIMEOUT_S = 120.0
"""Seconds that a summary may take."""
_log = logging.getLogger(__name__)


class Summaries:
    """Summarises sessions, each once at a time; `keep` writes the summary, also while a turn runs."""

    def __init__(self, keep: Callable[[str, CompactionEntry | StateEntry], Awaitable[None]]) -> None:
        self._keep = keep
        self._running: dict[str, asyncio.Task[None]] = {}

    def after_turn(self, agent: AgentRecord, session: Session) -> None:
        """Begin the summary of a session if it is long. Its turn is over, and the next one hasn't begun."""
        if session.key not in self._running and _is_long(agent, session):
            task = asyncio.create_task(self._summarise(agent, ReadSession([*session.entries])))
            self._running[session.key] = task
            task.add_done_callback(lambda _: self._running.pop(session.key))

    async def close(self) -> None:
        """Cancel running summaries: the next turn of a session begins its summary again."""
        for task in self._running.values():
            task.cancel()
        await self.idle()

    async def idle(self) -> None:
        """Wait until no summary runs."""
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    async def _summarise(self, agent: AgentRecord, session: Session) -> None:
        try:
            await self._keep(session.key, await _entry(agent, session))
        except Exception:  # noqa: BLE001 (the boundary of a background task: it is this session's failure alone)
            _log.exception("Session %s isn't summarised.", session.key)


async def _entry(agent: AgentRecord, session: Session) -> CompactionEntry | StateEntry:
    """The summary, or an entry that it failed: the next is made when the session is longer."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            if entry := await compaction(agent, session, CallbackHost()):
                return entry
    except TimeoutError:
        _log.warning("Session %s isn't summarised: it took more than %g s.", session.key, TIMEOUT_S)
    except DenizenError as error:
        _log.warning("Session %s isn't summarised: %s", session.key, error)
    turn = Turn(agent, session, CallbackHost(), TurnOptions())
    return no_summary(turn.context.tokens(turn.view()))


def _is_long(agent: AgentRecord, session: Session) -> bool:
    if _messages_seen(session.entries) > MAX_MESSAGES:
        return True
    turn = Turn(agent, session, CallbackHost(), TurnOptions())
    tokens = turn.context.tokens(view := turn.view())
    if tokens < turn.state.unsummarised * RETRY_SUMMARY_GROWTH:
        return False
    return tokens > FULL_SHARE * SURELY_HELD and tokens > FULL_SHARE * view.window


def _messages_seen(entries: Sequence[AnyEntry]) -> int:
    """User messages and replies since the last summary or the last failure to make one, without tool traffic."""
    count, last = 0, ""
    for entry in reversed(entries):
        if entry.id == last:
            break
        match entry:
            case CompactionEntry(truncate_over=0) if not last:
                last = entry.last
            case StateEntry(name=name) if name == UNSUMMARISED and not last:
                break
            case UserEntry():
                count += 1
            case AssistantEntry(message=message) if not message.tool_calls:
                count += 1
    return count
