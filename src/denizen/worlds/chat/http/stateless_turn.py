"""Answers without a session: a session in memory gets the whole conversation, and is forgotten with the reply."""

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from denizen.engine import Resume, TurnOptions, run_turn
from denizen.engine.turn import Start
from denizen.entries import AssistantEntry, EndEntry, SystemEntry, ToolEntry, UserEntry
from denizen.errors import DenizenError
from denizen.events import Done, LlmStream, RunEvent, TextDelta
from denizen.messages import AssistantMessage, ToolResult, UserMessage
from denizen.ports import Answer, Ask, NoControls, Parked, Session
from denizen.runtime.cache import SharedCache
from denizen.sessions import MemoryStore, SessionKey
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.http.conversation import ConversationItem, ConversationRequest, joined_parts
from denizen.worlds.chat.http.requests import Refused
from denizen.worlds.chat.turns import caller

NOBODY_TO_ASK = "nobody can be asked here: the request names no session"


async def stateless_events(gateway: Gateway, request: ConversationRequest) -> AsyncGenerator[RunEvent]:
    """The events of a turn that answers the conversation."""
    record = gateway.agent.record
    store = MemoryStore(clock=record.clock, redactor=record.redactor)
    record = dataclasses.replace(record, store=store, states=SharedCache(1, 50_000))
    session = await store.open(str(SessionKey(uuid4().hex, channel="api")), profile=record.name)
    start = await _write_conversation(session, request.items)
    events = asyncio.Queue[RunEvent | None]()
    options = TurnOptions(read_only=gateway.agent.read_only, channel="api", output=request.output)
    host = _NobodyToAsk(events.put_nowait)
    turn = asyncio.create_task(run_turn(caller.with_tools(record, request.tools), session, start, host, options))
    turn.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while event := await events.get():
            match event:
                case Done(result) if result.stop_reason == "error":
                    continue
                case Done(result) if request.output:
                    yield Done(replace(result, reply=msgspec.json.encode(result.output).decode()))
                case LlmStream(TextDelta()) if request.output:
                    continue  # an answer counts once it fulfils the schema
                case _:
                    yield event
        await turn
    except DenizenError as error:
        raise Refused(502, record.redact(str(error))) from error
    finally:
        turn.cancel()
        with suppress(asyncio.CancelledError, DenizenError):
            await turn


async def _write_conversation(session: Session, items: Sequence[ConversationItem]) -> Start:
    """Write a conversation into a session, except for its end, which begins the turn."""
    results = {each.call_id: each for each in items if isinstance(each, ToolResult)}
    called = {call.id for each in items if isinstance(each, AssistantMessage) for call in each.tool_calls}
    if unknown := sorted(results.keys() - called):
        raise Refused(400, f"No call has the id {unknown[0]!r} of this result.")
    waiting: list[UserMessage] = []
    is_open = False  # the last reply has calls: its turn hasn't ended
    for item in items:
        match item:
            case UserMessage():
                waiting.append(item)
            case SystemEntry():
                await session.append(item)
            case AssistantMessage():
                if waiting:
                    await session.append(UserEntry(message=UserMessage(joined_parts(waiting))))
                await session.append(AssistantEntry(message=item))
                for call in item.tool_calls:
                    given = results.get(call.id)
                    text = given.text if given else caller.NO_RESULT
                    result = caller.result_of(call, text, is_error=given is None)
                    await session.append(ToolEntry(message=result))
                waiting.clear()
                is_open = bool(item.tool_calls)
                if not is_open:
                    await session.append(EndEntry(stop_reason="answered"))
    if not waiting:
        return Resume()
    if is_open:
        await session.append(EndEntry(stop_reason="answered"))
    return UserMessage(joined_parts(waiting))


class _NobodyToAsk(NoControls):
    """The host of such a turn: approvals are refused, and the client's tools are the client's to run."""

    def __init__(self, emit: Callable[[RunEvent], None]) -> None:
        self._emit = emit

    def emit(self, event: RunEvent) -> None:
        self._emit(event)

    async def ask(self, request: Ask) -> Answer | Parked:
        if request.question == caller.CALLER_RUNS:
            return Parked()
        return Answer(request.call_id, allow=False, text=NOBODY_TO_ASK, unasked=True)
