"""The events of a message's turn, for the request that waits for its reply."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import NamedTuple

from denizen.engine.resume import question_of
from denizen.entries import AssistantEntry, EndEntry, UserEntry
from denizen.errors import DenizenError
from denizen.events import Done, LlmEnd, LlmStream, RunEvent, RunResult, TextDelta, Withdrawn
from denizen.messages import AssistantMessage
from denizen.ports import InboundMessage
from denizen.worlds.chat.events.relay import TurnEvent
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.http.requests import Refused
from denizen.worlds.chat.ledger import ledger
from denizen.worlds.chat.turns import caller


class FollowedTurn(NamedTuple):
    """The turn that answers a request, how it is started, and the number of entries that it had before."""

    message: InboundMessage
    start: Callable[[], Awaitable[object]]
    entries_before: int = 0


class Replayed:
    """Events of the turn were missing: all of them follow again."""


class _TurnEvents:
    """The events of a turn, each once, up to the first that is missing.

    They also end when another attempt begins a text of which a part was sent already.
    """

    def __init__(self) -> None:
        self.events = asyncio.Queue[RunEvent | None]()
        self._attempt = self._last = 0
        self._in_text = False

    def add(self, heard: TurnEvent) -> None:
        if heard.attempt > self._attempt and not self._in_text:
            self._attempt, self._last = heard.attempt, 0
        if (heard.attempt, heard.first) == (self._attempt, self._last + 1):
            self._last = heard.last
            match heard.event:
                case LlmStream(TextDelta()):
                    self._in_text = True
                case LlmEnd() | Withdrawn():
                    self._in_text = False
            self.events.put_nowait(heard.event)


async def follow(gateway: Gateway, turn: FollowedTurn) -> AsyncGenerator[RunEvent | Replayed]:
    """Start the turn and yield its events, over failed attempts.

    If events are missing, the transcript's new entries replace them. Raises HTTPException 502 for failures after the
    message was accepted, so that clients don't send it again.
    """
    message, heard, over = turn.message, _TurnEvents(), None
    try:
        with gateway.listeners.subscribed(message, heard.add):
            async with gateway.listeners.listening():
                await turn.start()
                over = asyncio.create_task(gateway.outbox.outcome(message, ledger.OVER | {"parked"}))
                over.add_done_callback(lambda _: heard.events.put_nowait(None))
                while event := await heard.events.get():
                    if not isinstance(event, Done):
                        yield event
                    elif event.result.stop_reason != "error":
                        state, _ = await over  # the next request finds the turn parked, or over
                        if event.result.stop_reason == "parked" and state != "parked":
                            continue  # it was answered meanwhile, and went on
                        yield event
                        return
            state, reply = over.result()
            if state == "failed":
                raise Refused(502, reply)
            yield Replayed()
            for event in await _replayed_events(gateway, turn, reply, is_parked=state == "parked"):
                yield event
    except DenizenError as error:
        if not over:
            raise
        raise Refused(502, f"The message was accepted, but its answer can't be read now: {error}") from error
    finally:
        if over:
            over.cancel()


async def _replayed_events(gateway: Gateway, turn: FollowedTurn, reply: str, *, is_parked: bool) -> list[RunEvent]:
    """The events of a turn, from the transcript's new entries."""
    record, message = gateway.agent.record, turn.message
    entries = await record.store.read(message.session_key)
    begins = (at for at, entry in enumerate(entries) if isinstance(entry, UserEntry) and entry.message.id == message.id)
    events, end = list[RunEvent](), EndEntry(stop_reason="answered")
    for entry in entries[max(turn.entries_before, next(begins, len(entries))) :]:
        if isinstance(entry, EndEntry):
            end = entry
            break
        if isinstance(entry, AssistantEntry) and entry.message.stop_reason != "aborted":
            words = record.actions.read(entry.message, record.tools).reply
            events += [*([LlmStream(TextDelta(words))] if words else []), LlmEnd(entry.message)]
    if not is_parked:
        result = RunResult(reply, stop_reason=end.stop_reason, usage=end.usage, error=end.error)
        return [*events, Done(result)]
    calls, question = caller.open_calls(entries, caller.offered(message)), question_of(entries)
    result = RunResult(
        "", stop_reason="parked", messages=[AssistantMessage([*calls])], error=question.question if question else ""
    )
    return [*events, Done(result)]
