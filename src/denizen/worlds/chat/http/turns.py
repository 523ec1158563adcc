"""Turns of whoever brings a conversation: in a session that lasts, or in one that is forgotten with its reply."""

import asyncio
import dataclasses
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from uuid import uuid4

import msgspec
from aiohttp import web
from msgspec.structs import replace

from denizen.engine import Resume, TurnOptions, run_turn
from denizen.engine.output import OutputType
from denizen.engine.resume import question_of
from denizen.engine.turn import Start
from denizen.entries import AnyEntry, AssistantEntry, EndEntry, SystemEntry, ToolEntry, UserEntry
from denizen.errors import DenizenError, SessionError
from denizen.events import Done, LlmEnd, LlmStream, RunEvent, RunResult, TextDelta, ThinkingDelta, Withdrawn
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult, Usage, UserMessage, UserPart
from denizen.ports import Answer, Ask, Control, InboundMessage, NoControls, Parked, Schema, Session, Steer
from denizen.runtime.cache import SharedCache
from denizen.sessions import MemoryStore, SessionKey
from denizen.worlds.chat.gateway import MAX_KEY_CHARS, Gateway
from denizen.worlds.chat.http.follow import Retold, follow
from denizen.worlds.chat.http.requests import Refused
from denizen.worlds.chat.ledger import ledger, outbound, questions
from denizen.worlds.chat.ledger.reply_options import ReplyOptions, reply_text, with_attachments
from denizen.worlds.chat.turns import caller
from denizen.worlds.commands import split_command, without_escape

SESSION_HEADER, MESSAGE_HEADER, RETRY_HEADER = "Denizen-Session", "Idempotency-Key", "X-Stainless-Retry-Count"
"""The headers that name a session and a message in it, and with which official SDKs count how often they repeat it."""
NOBODY_ASKED = "nobody can be asked here: the request names no session"

Said = UserMessage | AssistantMessage | ToolResult | SystemEntry
"""A message of the conversation that a caller brings."""


class ConversationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller sends: all that was said, their tools, and the session that it belongs to (empty: to none).

    `output` is what the answer must be, if not text.
    What they say with the same `id` again is the same message. So is, while it isn't over, the session's last one where
    the caller says that this `is_repeated`.
    """

    said: Sequence[Said]
    tools: Sequence[Schema] = ()
    output: OutputType | None = None
    session: str = ""
    id: str = ""
    is_repeated: bool = False

    @classmethod
    def of(
        cls,
        request: web.Request,
        said: Sequence[Said],
        tools: Sequence[Schema],
        output: OutputType | None = None,
    ) -> "ConversationRequest":
        """What a request brings, with what its headers say of it."""
        named = request.headers.get
        is_repeated = named(RETRY_HEADER, "0") != "0"
        session, message_id = named(SESSION_HEADER, ""), named(MESSAGE_HEADER, "")
        return cls(said=said, tools=tools, output=output, session=session, id=message_id, is_repeated=is_repeated)


class FinalAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What it came to: all the text, the thoughts by model call, the calls that the caller is to run, what it took."""

    text: str
    thoughts: Sequence[str] = ()
    calls: Sequence[ToolCall] = ()
    usage: Usage = Usage()
    cut: bool = False


class Thought(msgspec.Struct, frozen=True):
    """Some more of what the model thinks."""

    text: str


Pieces = AsyncGenerator[str | Thought | Withdrawn | FinalAnswer]
"""The thoughts and the text as they come, what of it doesn't count after all, and at last the reply."""


class _Text:
    """The text of a turn, for a reader who can't be made to forget: what is said again must be what was said before."""

    def __init__(self) -> None:
        self.gap = ""  # before what is said next
        self._said = [""]
        self._ahead = ""  # what the reader has beyond that

    def __str__(self) -> str:
        return "".join(self._said)

    def __bool__(self) -> bool:
        return any(self._said)

    def add(self, words: str) -> str | Withdrawn:
        """What the reader doesn't have yet of more words, which say all anew where they aren't what the reader has."""
        words, self.gap = self.gap + words, ""
        self._said.append(words)
        if not self._ahead:
            return words
        if self._ahead.startswith(words):
            self._ahead = self._ahead.removeprefix(words)
            return ""
        if words.startswith(self._ahead):
            words, self._ahead = words.removeprefix(self._ahead), ""
            return words
        return Withdrawn(self.unsaid())

    def unsaid(self) -> str:
        """What the reader has that wasn't said."""
        ahead, self._ahead = self._ahead, ""
        return ahead

    def withdraw(self, words: str | None = None) -> None:
        """Take back the words that were said last; None: all."""
        said = str(self)
        kept = "" if words is None else said.removesuffix(words)
        self._said, self._ahead, self.gap = [kept], said[len(kept) :] + self._ahead, ""


async def answer(gateway: Gateway, conversation: ConversationRequest) -> Pieces:
    """Answer the end of a conversation. Raises HTTPException for one that can't be answered, or wasn't."""
    own = {tool.name for tool in gateway.agent.record.tools}
    if taken := own.intersection(tool.name for tool in conversation.tools):
        raise Refused(400, f"The agent has tools of these names itself: {', '.join(sorted(taken))}. Rename yours.")
    if not conversation.said or not isinstance(conversation.said[-1], UserMessage | ToolResult):
        raise Refused(400, "The last message must be the user's, or the result of a tool.")
    events = _in_session(gateway, conversation) if conversation.session else _alone(gateway, conversation)
    names = {tool.name for tool in conversation.tools}
    text, thoughts, cut = _Text(), [""], False
    async with aclosing(events):
        async for event in events:
            match event:
                case LlmStream(TextDelta(delta)):
                    if piece := text.add(delta):
                        yield piece
                case LlmStream(ThinkingDelta(delta)):
                    thoughts[-1] += delta
                    yield Thought(delta)
                case LlmEnd(message):
                    thoughts.append("")
                    cut = message.stop_reason == "length"
                    text.gap = "\n\n" if text and not cut else ""
                case Withdrawn(words):
                    thoughts[-1] = ""
                    text.withdraw(words)
                case Retold():
                    text.withdraw()
                case Done(result):
                    calls = _waiting(result, names) if result.stop_reason == "parked" else []
                    words = "" if calls else _last_words(result, str(text))
                    if words and (piece := text.add(words)):
                        yield piece
                    if unsaid := text.unsaid():
                        yield Withdrawn(unsaid)
                    thought = [*filter(None, thoughts)]
                    yield FinalAnswer(text=str(text), thoughts=thought, calls=calls, usage=result.usage, cut=cut)


def _last_words(result: RunResult, said: str) -> str:
    """What is left to say of how a turn ended."""
    if result.stop_reason == "parked":
        return result.error
    words = reply_text(result)
    is_said = bool(said) if result.stop_reason == "answered" else said.endswith(words)
    return "" if is_said else words


def _waiting(result: RunResult, names: set[str]) -> list[ToolCall]:
    """The calls that the caller is to run."""
    done = {message.call_id for message in result.messages if isinstance(message, ToolResult)}
    replies = (message for message in reversed(result.messages) if isinstance(message, AssistantMessage))
    calls = next(replies, AssistantMessage([])).tool_calls
    return [call for call in calls if call.name in names and call.id not in done]


# In a session


async def _in_session(gateway: Gateway, conversation: ConversationRequest) -> AsyncGenerator[RunEvent | Retold]:
    """Append what was said after the agent's last message, and run the turn in the order of the session."""
    if conversation.output:
        raise Refused(400, f"A JSON answer needs a request without {SESSION_HEADER}.")
    key, said = _key(conversation.session), conversation.said
    start = next((at for at in range(len(said), 0, -1) if isinstance(said[at - 1], AssistantMessage)), 0)
    new = said[start:]
    message, attached = _message(key, conversation, new)
    name, _ = split_command(message.content)
    parked = await gateway.database.read(partial(ledger.parked, session_key=str(key)))
    entries = await gateway.agent.record.store.read(str(key)) if parked else []
    calls = caller.open_calls(entries, caller.offered(parked)) if parked else []
    begin: Callable[[], Awaitable[object]] = partial(asyncio.sleep, 0)
    after = len(entries)
    literal = replace(message, content=without_escape(message.content))
    accepted = partial(_accepted, message=literal, is_repeated=conversation.is_repeated)
    question = question_of(entries) if not calls else None
    asked = await _asked(gateway, parked, question.call_id) if parked and question else []
    reading = questions.choose(asked, message.content, lambda _: True)  # it was asked in this chat, or elsewhere
    if reading and not reading.answer and question:
        yield Done(RunResult(reading.reply))
        return
    if name == "stop" or reading or (name and not calls):
        begin = partial(gateway.accept, message)
        if not parked or not (name == "stop" or reading):
            await begin()
            _, reply = await gateway.outbox.outcome(message, ledger.OVER)
            yield Done(RunResult(reply or "Stopped."))
            return
        if reading and reading.answer:
            begin = partial(_go_on, gateway, str(key), [reading.answer])
    elif known := await gateway.database.read(accepted):
        parked, after = known, 0
    elif calls:
        if attached:
            raise Refused(400, "Nothing can be attached to the results of tools in a session: send it afterwards.")
        steered = [Steer(message.content, message.id)] if message.content else []
        begin = partial(_go_on, gateway, str(key), [*(_answer(call, new) for call in calls), *steered])
    elif parked:
        what = asked[0].message.content if asked else "Answer it, or /stop the turn."
        raise Refused(409, f"The session waits for an answer of its owner first.\n{what}")
    elif results := {each.call_id for each in new if isinstance(each, ToolResult)}:
        parked = await gateway.database.read(partial(ledger.latest, session_key=str(key)))
        entries = await gateway.agent.record.store.read(str(key)) if parked else []
        after = _after_results(entries, parked.id if parked else "", results)
    else:
        instructions = "\n\n".join(each.text for each in new if isinstance(each, SystemEntry))
        begin = partial(_put, gateway, literal, instructions)
    async with aclosing(follow(gateway, parked or message, begin, after=after)) as events:
        async for event in events:
            if isinstance(event, Done) and event.result.stop_reason == "parked":
                event = await _with_question(gateway, parked or message, event.result)
            yield event


async def _with_question(gateway: Gateway, message: InboundMessage, result: RunResult) -> Done:
    """The end of a turn that waits, with how to answer its question."""
    question = question_of(await gateway.agent.record.store.read(message.session_key))
    asked = await _asked(gateway, message, question.call_id) if question else []
    return Done(replace(result, error=asked[0].message.content) if asked else result)


async def _asked(gateway: Gateway, message: InboundMessage, call_id: str) -> list[questions.OpenQuestion]:
    return await gateway.database.read(partial(questions.asked_by, message=message, call_id=call_id))


def _after_results(entries: Sequence[AnyEntry], message_id: str, results: set[str]) -> int:
    """Where a message's turn goes on after results that were sent before. Raises HTTPException: they weren't."""
    is_begun, after = False, 0
    for place, entry in enumerate(entries, 1):
        if isinstance(entry, UserEntry) and entry.message.id == message_id:
            is_begun = True
        elif is_begun and isinstance(entry, ToolEntry) and entry.message.call_id in results:
            after = place
    if not after:
        raise Refused(409, "No call of this session waits for a result.")
    return after


def _message(key: SessionKey, conversation: ConversationRequest, said: Sequence[Said]) -> tuple[InboundMessage, bool]:
    """What users say, as one message, and whether something is attached to it."""
    parts = _parts([each for each in said if isinstance(each, UserMessage)])
    text = "".join(part.text for part in parts if isinstance(part, Text))
    attached = [part for part in parts if not isinstance(part, Text)]
    message = with_attachments(InboundMessage("http", key.peer, "api", text, str(key)), attached)
    if conversation.id:
        named = f"{key} {conversation.id}".encode(errors="surrogateescape")
        message = replace(message, id=hashlib.sha256(named).hexdigest())
    return ReplyOptions(send_response=False).put_in(caller.offer(message, conversation.tools)), bool(attached)


def _parts(said: Sequence[UserMessage]) -> list[UserPart]:
    """What messages say together: the words, and then what is attached."""
    text = "\n\n".join(each.text for each in said)
    attached = [part for each in said for part in each.content if not isinstance(part, Text)]
    words = [Text(text)] if text or not attached else []
    return [*words, *attached]


def _key(session: str) -> SessionKey:
    """The session of that key, or that messages to the chat of that name are in."""
    try:
        whole = session.strip().lower().startswith("agent:")
        key = SessionKey.parse(session) if whole else SessionKey(session, channel="http")
    except SessionError as error:
        raise Refused(400, str(error)) from error
    if len(str(key)) > MAX_KEY_CHARS:
        raise Refused(
            400,
            f"{SESSION_HEADER} is too long: at most {MAX_KEY_CHARS:,} characters, percent-encoded. Shorten the name.",
        )
    return key


def _accepted(db: ledger.LedgerConnection, message: InboundMessage, *, is_repeated: bool) -> InboundMessage | None:
    """The message as it was accepted before."""
    if ledger.accepted_key(db, message.channel, message.id):
        return message
    last = ledger.latest(db, message.session_key) if is_repeated else None
    is_same = last is not None and last == replace(message, id=last.id)
    return last if last and is_same and outbound.outcome(db, last)[0] not in ledger.OVER else None


def _answer(call: ToolCall, said: Sequence[Said]) -> Answer:
    for result in said:
        if isinstance(result, ToolResult) and result.call_id == call.id:
            return Answer(call.id, allow=True, text=result.text)
    return Answer(call.id, allow=False, text=caller.NO_RESULT)


async def _go_on(gateway: Gateway, key: str, controls: Sequence[Control]) -> None:
    if not await gateway.database.run(partial(ledger.control_parked, session_key=key, given=controls)):
        raise Refused(409, "The session has gone on meanwhile.")
    gateway.database.ring()


async def _put(gateway: Gateway, message: InboundMessage, instructions: str) -> None:
    """Put a message, and before it the caller's instructions, to wait for their turn."""
    if instructions:
        await gateway.queue.put(replace(message, channel=ledger.SYSTEM, content=instructions, metadata={}))
    await gateway.queue.put(message, waits=True)


# In none


async def _alone(gateway: Gateway, conversation: ConversationRequest) -> AsyncGenerator[RunEvent]:
    """A turn after all that was said, in a session that is forgotten with it."""
    record = gateway.agent.record
    store = MemoryStore(clock=record.clock, redactor=record.redactor)
    record = dataclasses.replace(record, store=store, states=SharedCache(1, 50_000))
    session = await store.open(str(SessionKey(uuid4().hex, channel="api")), profile=record.name)
    start = await _retell(session, conversation.said)
    events = asyncio.Queue[RunEvent | None]()
    options = TurnOptions(read_only=gateway.agent.read_only, channel="api", output=conversation.output)
    host = _NobodyToAsk(events.put_nowait)
    turn = asyncio.create_task(run_turn(caller.with_tools(record, conversation.tools), session, start, host, options))
    turn.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while event := await events.get():
            match event:
                case Done(result) if result.stop_reason == "error":
                    continue
                case Done(result) if options.output:
                    yield Done(replace(result, reply=msgspec.json.encode(result.output).decode()))
                case LlmStream(TextDelta()) if options.output:
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


async def _retell(session: Session, said: Sequence[Said]) -> Start:
    """Write what was said into a session; what is left begins the turn."""
    results = {each.call_id: each for each in said if isinstance(each, ToolResult)}
    called = {call.id for each in said if isinstance(each, AssistantMessage) for call in each.tool_calls}
    if unknown := sorted(results.keys() - called):
        raise Refused(400, f"There is no call {unknown[0]!r} that this could be the result of.")
    waiting: list[UserMessage] = []
    begun = False
    for message in said:
        match message:
            case UserMessage():
                waiting.append(message)
            case SystemEntry():
                await session.append(message)
            case AssistantMessage():
                if waiting:
                    await session.append(UserEntry(message=UserMessage(_parts(waiting))))
                await session.append(AssistantEntry(message=message))
                for call in message.tool_calls:
                    given = results.get(call.id)
                    result = caller.result_of(call, given.text if given else caller.NO_RESULT, is_error=given is None)
                    await session.append(ToolEntry(message=result))
                waiting.clear()
                begun = bool(message.tool_calls)
                if not begun:
                    await session.append(EndEntry(stop_reason="answered"))
    if not waiting:
        return Resume()
    if begun:
        await session.append(EndEntry(stop_reason="answered"))
    return UserMessage(_parts(waiting))


class _NobodyToAsk(NoControls):
    """The host of such a turn: approvals are refused, and the caller's tools are the caller's to run."""

    def __init__(self, emit: Callable[[RunEvent], None]) -> None:
        self._emit = emit

    def emit(self, event: RunEvent) -> None:
        self._emit(event)

    async def ask(self, request: Ask) -> Answer | Parked:
        if request.question == caller.CALLER_RUNS:
            return Parked()
        return Answer(request.call_id, allow=False, text=NOBODY_ASKED, unasked=True)
