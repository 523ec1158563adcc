"""Previews a session's next step: its next model request, or the tool call that waits for approval."""

import dataclasses
from collections.abc import Iterator, Sequence

import msgspec

from denizen.config.settings import Rule
from denizen.engine.ask import request_of
from denizen.engine.callback_host import CallbackHost
from denizen.engine.permit import preview
from denizen.engine.record import AgentRecord
from denizen.engine.resume import question_of
from denizen.engine.session_state import PROMPT, SessionPrompt
from denizen.engine.turn import Turn, TurnOptions
from denizen.entries import AnyEntry, ParkedEntry, SessionEntry, StateEntry
from denizen.errors import SessionError, ToolRefused
from denizen.messages import AssistantMessage, Document, Image, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from denizen.ports import ModelRequest, Traits
from denizen.runtime.cache import SharedCache
from denizen.text.documents import text_in
from denizen.text.estimate import IMAGE_TOKENS, estimate_document, estimate_text


class RequestPart(msgspec.Struct, frozen=True):
    """A piece of a model call. `message` counts from 1; 0 is what comes before the messages.

    `role` is system, tools, user, assistant or result; `kind` prompt, grammar, schema, text, thinking, call, image,
    document or opaque. `tokens` is an estimate: no provider was asked.
    """

    message: int
    role: str
    kind: str
    characters: int
    tokens: int
    text: str


class ReadSession:
    """A session that was read without a lock: nothing can be written to it."""

    moved = False
    warnings: Sequence[str] = ()

    def __init__(self, entries: Sequence[AnyEntry]) -> None:
        first = entries[0] if entries else None
        self.key = first.key if isinstance(first, SessionEntry) else ""
        self.head = entries[-1].id if entries else ""
        self.entries = entries

    async def append(self, entry: AnyEntry, *, expect_head: str | None = None) -> str:
        raise SessionError(f"Session {self.key} is open for reading alone.")

    async def move_head(self, to: str) -> None:
        raise SessionError(f"Session {self.key} is open for reading alone.")

    async def sync(self) -> None:
        """Nothing was written."""

    async def lost(self) -> None:
        """Nothing is held."""

    async def close(self) -> None:
        """Nothing is held."""


class WaitingCall(msgspec.Struct, frozen=True):
    """A tool call that waits for a person's answer.

    `diff` is the call's change to files, `rule` the rule that "always" would write into the configuration. None:
    only this call can be approved.
    """

    question: ParkedEntry
    is_quotation: bool = False
    diff: str = ""
    rule: Rule | None = None


async def waiting_call(agent: AgentRecord, entries: Sequence[AnyEntry]) -> WaitingCall | None:
    """The call that waits in a session with these entries, if any. The agent must have the session's profile."""
    question = question_of(entries)
    if question is None:
        return None
    agent = dataclasses.replace(agent, states=SharedCache(1, 1))  # a turn that runs has a state of its own
    turn = Turn(agent, ReadSession(entries), CallbackHost(), TurnOptions())
    reply, tool = turn.state.read_reply(), agent.tools.get(question.name)
    call = next((each for each in reply.calls if each.id == question.call_id), None)
    if call is None or tool is None:
        return WaitingCall(question)
    if call.id in reply.quoted:
        return WaitingCall(question, is_quotation=True)
    in_sight = Traits.NONE if turn.state.user_words.covers(call) else turn.state.in_sight
    rule = agent.policy.rule_for(call, tool, in_sight)
    try:
        args = agent.policy.arguments(call, tool, approved=turn.state.approved)
    except ToolRefused:
        return WaitingCall(question, rule=rule)
    return WaitingCall(question, diff=await preview(turn, tool, args), rule=rule)


def next_request(agent: AgentRecord, entries: Sequence[AnyEntry]) -> ModelRequest:
    """The next request of the session with these entries, without the user's next message."""
    session = ReadSession(entries)
    return request_of(Turn(agent, session, CallbackHost(), TurnOptions()))


def last_prompt(entries: Sequence[AnyEntry]) -> SessionPrompt | None:
    """The system prompt that was recorded last."""
    states = (entry for entry in reversed(entries) if isinstance(entry, StateEntry) and entry.name == PROMPT)
    return next(filter(None, (state.read(SessionPrompt) for state in states)), None)


def parts_of(request: ModelRequest, prompt: str) -> Iterator[RequestPart]:
    """The pieces of a call, in order; the system prompt beyond the session's `prompt` is the grammar."""
    before, found, after = request.system.partition(prompt) if prompt else ("", "", request.system)
    for kind, text in (("grammar", before), ("prompt", found), ("grammar", after)):
        if text.strip():
            yield _part(0, "system", kind, text)
    for schema in request.tools:
        yield _part(0, "tools", "schema", msgspec.json.encode(schema).decode())
    for number, message in enumerate(request.messages, 1):
        yield from _parts(number, message)


def _parts(number: int, message: Message) -> Iterator[RequestPart]:
    role = _role(message)
    for part in message.content:
        match part:
            case Text(text):
                yield _part(number, role, "text", text)
            case Thinking(text=text):
                yield _part(number, role, "thinking", text)
            case ToolCall(name=name, args=args):
                yield _part(number, role, "call", f"{name} {msgspec.json.encode(args).decode()}")
            case Image(media_type, data):
                yield RequestPart(number, role, "image", 0, IMAGE_TOKENS, f"{media_type}, {len(data):,} bytes")
            case Document(media_type, data, name):
                what = f"{name}, {media_type}, {len(data):,} bytes"
                text = text_in(part)
                yield RequestPart(
                    number, role, "document", len(text), estimate_document(part), f"{what}\n{text}".rstrip()
                )
            case Opaque(data=data):
                yield _part(number, role, "opaque", str(data))


def _role(message: Message) -> str:
    match message:
        case AssistantMessage():
            return "assistant"
        case ToolResult():
            return "result"
        case _:
            return "user"


def _part(message: int, role: str, kind: str, text: str) -> RequestPart:
    return RequestPart(message, role, kind, len(text), estimate_text(text), text)
