"""Answers in a lasting session: the request's new messages become a message of its queue.

The outcome depends on what the session waits for, and on what the request has after the agent's last reply:

| the session waits for | the request brings | then |
|---|---|---|
| anything | /stop | the parked turn is stopped and followed; without one, the reply says so |
| a person's answer | an answer | the parked turn goes on and is followed |
| a person's answer | an unclear answer | the reply says what can be answered |
| anything but results | another command | its reply |
| anything | a message that was accepted before | its turn is followed from the beginning |
| results of the client's tools | results, text | the parked turn goes on with them and is followed |
| a person's answer | anything else | 409, with the question |
| nothing | results that it has already | their turn is followed from there |
| nothing | a message | it is queued, and its turn followed |
"""

import hashlib
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from denizen.engine.resume import question_of
from denizen.entries import AnyEntry, SystemEntry, ToolEntry, UserEntry
from denizen.errors import SessionError
from denizen.events import Done, RunEvent, RunResult
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult, UserMessage
from denizen.ports import Answer, Control, InboundMessage, Steer
from denizen.sessions import SessionKey
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.http.conversation import SESSION_HEADER, ConversationItem, ConversationRequest, joined_parts
from denizen.worlds.chat.http.follow import FollowedTurn, Replayed, follow
from denizen.worlds.chat.http.requests import Refused, refusing
from denizen.worlds.chat.ledger import ledger, outbound, questions
from denizen.worlds.chat.ledger.ledger import LedgerConnection
from denizen.worlds.chat.ledger.reply_options import ReplyOptions, has_attachments, with_attachments
from denizen.worlds.chat.turns import caller
from denizen.worlds.chat.turns.intake import MAX_KEY_CHARS
from denizen.worlds.commands import split_command, without_escape


class _Parked(NamedTuple):
    """A turn that waits: for a person's answer to `question`, or for results of `calls`, which the client runs."""

    message: InboundMessage
    entries: Sequence[AnyEntry]
    calls: Sequence[ToolCall]
    question: questions.OpenQuestion | None


async def session_events(gateway: Gateway, request: ConversationRequest) -> AsyncGenerator[RunEvent | Replayed]:
    """The events of the turn that answers a request."""
    if request.output:
        raise Refused(400, f"A JSON answer needs a request without {SESSION_HEADER}.")
    found = await _turn_or_reply(gateway, request)
    if isinstance(found, str):
        yield Done(RunResult(found))
        return
    async with aclosing(follow(gateway, found)) as events:
        async for event in events:
            if isinstance(event, Done) and event.result.stop_reason == "parked":
                event = await _with_question(gateway, found.message, event.result)
            yield event


async def _turn_or_reply(gateway: Gateway, request: ConversationRequest) -> FollowedTurn | str:
    """The turn to follow, or the reply if there is none: the rows of the table, in its order."""
    key, new = _session_key(request.session), _new_items(request.items)
    message = _message(key, request, new)
    literal = replace(message, content=without_escape(message.content))
    parked = await _parked_turn(gateway, str(key))
    command, _ = split_command(message.content)
    if parked and command == "stop":
        return FollowedTurn(parked.message, partial(gateway.accept, message), len(parked.entries))
    if parked and parked.question:
        reading = questions.choose([parked.question], message.content, lambda _: True)
        if reading and reading.control:
            go_on = partial(_go_on, gateway, str(key), [reading.control])
            return FollowedTurn(parked.message, go_on, len(parked.entries))
        if reading:
            return reading.reply
    if command and not (parked and parked.calls):
        await gateway.accept(message)
        _, reply = await gateway.outbox.outcome(message, ledger.OVER)
        return reply or "Stopped."
    accepted = partial(_accepted_before, message=literal, is_repeated=request.is_repeated)
    if known := await gateway.database.read(accepted):
        return FollowedTurn(known, _is_started)
    results = {each.call_id: each for each in new if isinstance(each, ToolResult)}
    if parked and parked.calls:
        if has_attachments(message):
            raise Refused(400, "Results of tools can't have attachments in a session. Send them afterwards.")
        go_on = partial(_go_on, gateway, str(key), _answers(parked.calls, results, message))
        return FollowedTurn(parked.message, go_on, len(parked.entries))
    if parked:
        question = parked.question.message.content if parked.question else "Answer it, or /stop the turn."
        raise Refused(409, f"The session waits for its owner's answer first.\n{question}")
    if results:
        return await _turn_with_results(gateway, str(key), results.keys())
    instructions = "\n\n".join(each.text for each in new if isinstance(each, SystemEntry))
    return FollowedTurn(message, partial(_put, gateway, literal, instructions))


async def _parked_turn(gateway: Gateway, session_key: str) -> _Parked | None:
    message = await gateway.database.read(partial(ledger.parked, session_key=session_key))
    if not message:
        return None
    entries = await gateway.agent.record.store.read(session_key)
    calls = caller.open_calls(entries, caller.offered(message))
    return _Parked(message, entries, calls, None if calls else await _question(gateway, message, entries))


async def _question(
    gateway: Gateway, message: InboundMessage, entries: Sequence[AnyEntry]
) -> questions.OpenQuestion | None:
    """The question that a message's turn waits for, in whichever chat it was asked."""
    question = question_of(entries)
    if not question:
        return None
    asked = partial(questions.asked_by, message=message, call_id=question.call_id)
    return next(iter(await gateway.database.read(asked)), None)


async def _with_question(gateway: Gateway, message: InboundMessage, result: RunResult) -> Done:
    """The end of a turn that waits, with its question and how to answer it."""
    question = await _question(gateway, message, await gateway.agent.record.store.read(message.session_key))
    return Done(replace(result, error=question.message.content) if question else result)


async def _turn_with_results(gateway: Gateway, session_key: str, call_ids: Collection[str]) -> FollowedTurn:
    """The session's last turn, from the results on that it has already. Raises HTTPException if it has none of them."""
    message = await gateway.database.read(partial(ledger.latest, session_key=session_key))
    entries = await gateway.agent.record.store.read(session_key) if message else []
    is_begun, after = False, 0
    for count, entry in enumerate(entries, 1):
        if isinstance(entry, UserEntry) and message and entry.message.id == message.id:
            is_begun = True
        elif is_begun and isinstance(entry, ToolEntry) and entry.message.call_id in call_ids:
            after = count
    if not (message and after):
        raise Refused(409, "No call of this session waits for a result.")
    return FollowedTurn(message, _is_started, after)


def _new_items(items: Sequence[ConversationItem]) -> Sequence[ConversationItem]:
    """The items after the agent's last reply."""
    replies = [at for at, each in enumerate(items) if isinstance(each, AssistantMessage)]
    return items[replies[-1] + 1 :] if replies else items


def _message(key: SessionKey, request: ConversationRequest, new: Sequence[ConversationItem]) -> InboundMessage:
    """The user's messages as one; its reply isn't sent but returned."""
    parts = joined_parts([each for each in new if isinstance(each, UserMessage)])
    text = "".join(part.text for part in parts if isinstance(part, Text))
    message = InboundMessage("http", key.peer, "api", text, str(key))
    message = with_attachments(message, [part for part in parts if not isinstance(part, Text)])
    if request.id:
        name = f"{key} {request.id}".encode(errors="surrogateescape")
        message = replace(message, id=hashlib.sha256(name).hexdigest())
    return ReplyOptions(send_response=False).put_in(caller.offer(message, request.tools))


def _session_key(session: str) -> SessionKey:
    """The session of this key, or of the chat of this name. Raises HTTPException."""
    with refusing(400, SessionError):
        is_key = session.strip().lower().startswith("agent:")
        key = SessionKey.parse(session) if is_key else SessionKey(session, channel="http")
    if len(str(key)) > MAX_KEY_CHARS:
        raise Refused(
            400,
            f"{SESSION_HEADER} is too long: at most {MAX_KEY_CHARS:,} characters, percent-encoded. Shorten the name.",
        )
    return key


def _accepted_before(db: LedgerConnection, message: InboundMessage, *, is_repeated: bool) -> InboundMessage | None:
    if ledger.accepted_key(db, message.channel, message.id):
        return message
    last = ledger.latest(db, message.session_key) if is_repeated else None
    is_same = last is not None and last == replace(message, id=last.id)
    return last if last and is_same and outbound.outcome(db, last)[0] not in ledger.OVER else None


def _answers(calls: Sequence[ToolCall], results: Mapping[str, ToolResult], message: InboundMessage) -> list[Control]:
    """The results of the calls, and the user's text with them."""
    answers: list[Control] = []
    for call in calls:
        result = results.get(call.id)
        text = result.text if result else caller.NO_RESULT
        answers.append(Answer(call.id, allow=result is not None, text=text))
    return [*answers, Steer(message.content, message.id)] if message.content else answers


async def _is_started() -> None:
    """Start nothing: the turn runs, or is over."""


async def _go_on(gateway: Gateway, key: str, controls: Sequence[Control]) -> None:
    if not await gateway.database.run(partial(ledger.control_parked, session_key=key, given=controls), key):
        raise Refused(409, "The session went on in the meantime.")
    gateway.database.ring()


async def _put(gateway: Gateway, message: InboundMessage, instructions: str) -> None:
    """Queue a message, after the client's instructions."""
    if instructions:
        await gateway.queue.put(replace(message, channel=ledger.SYSTEM, content=instructions, metadata={}))
    await gateway.queue.accept(message, waits=True)
