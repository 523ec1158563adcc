"""Going on where a crash, or a question to a person, stopped a turn (decisions, "No side effect runs twice")."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import cast

from denizen.engine.calls import record, refused, run_calls
from denizen.engine.record import AgentRecord
from denizen.engine.turn import Turn
from denizen.entries import (
    AnswerEntry,
    AnyEntry,
    AssistantEntry,
    CheckpointEntry,
    EndEntry,
    ParkedEntry,
    StartedEntry,
    StateEntry,
    ToolEntry,
    UserEntry,
)
from denizen.errors import SessionError
from denizen.events import RunResult
from denizen.messages import AssistantMessage, Message, ToolCall, ToolResult
from denizen.ports import Session, Traits
from denizen.ports.checkpoints import BEFORE
from denizen.text.not_run import CANCELLED, ELSEWHERE, MISSING, STOPPED_WHILE_RUNNING

UNDONE = "undone"
"""The state entry, after a head that was moved, that says how to take an undo back."""


async def settle_calls(turn: Turn) -> tuple[AssistantMessage, list[ToolResult]] | None:
    """Give every call of the last reply a result: run those that never started or may run again, report the others.

    Returns that reply with all its results if it is the last word of an unfinished turn.
    """
    last = last_reply(turn.session.entries)
    if last is None:
        return None
    calls = turn.agent.calls_of(last.reply)
    for call in calls:
        if call.id not in last.results and (why := _why_not(turn, call, last)):
            last.results[call.id] = await record(turn, refused(call, why))
    turn.snapshotted = last.snapshotted
    again = [call for call in calls if call.id not in last.results]
    await run_calls(turn, last.reply, again)
    settled = last_reply(turn.session.entries)
    return (settled.reply, [*settled.results.values()]) if settled else None


async def close_calls(turn: Turn) -> None:
    """Give every open call a result that says it was cancelled."""
    last = last_reply(turn.session.entries)
    if last is None:
        return
    for call in turn.agent.calls_of(last.reply):
        if call.id not in last.results:
            await record(turn, refused(call, STOPPED_WHILE_RUNNING if call.id in last.started else CANCELLED))


class LastReply:
    """The last answer of an unfinished turn, the results it has, and which of its calls had started.

    `snapshotted`: there is a checkpoint from before its calls, but none from after them yet. `returned`: the
    conversation was taken back to here.
    """

    def __init__(self, reply: AssistantMessage) -> None:
        self.reply = reply
        self.results: dict[str, ToolResult] = {}
        self.started: set[str] = set()
        self.snapshotted = False
        self.returned = False


def last_reply(entries: Sequence[AnyEntry]) -> LastReply | None:
    """The last reply of the unfinished turn and its results; None if there is none since the last message."""
    after: list[AnyEntry] = []
    for entry in reversed(entries):
        match entry:
            case AssistantEntry(message=reply):
                return _with_results(reply, after)
            case UserEntry() | EndEntry():
                return None
            case _:
                after.append(entry)
    return None


def _with_results(reply: AssistantMessage, after: Sequence[AnyEntry]) -> LastReply:
    last = LastReply(reply)
    for entry in reversed(after):
        match entry:
            case ToolEntry(message=result):
                last.results[result.call_id] = result
            case StartedEntry(call_id=call_id):
                last.started.add(call_id)
            case ParkedEntry(call_id=call_id):  # it asked the person, and runs again with the answer
                last.started.discard(call_id.rpartition(".")[0])
            case CheckpointEntry(label=label):
                last.snapshotted = label == BEFORE
            case StateEntry(name=name) if name == UNDONE:
                last.returned = True
    return last


def unfinished(entries: Sequence[AnyEntry]) -> bool:
    """Whether the last turn began and didn't end."""
    for entry in reversed(entries):
        if isinstance(entry, EndEntry):
            return False
        if isinstance(entry, (UserEntry, AssistantEntry, ToolEntry)):
            return True
    return False


def check_format(turn: Turn) -> None:
    """Open calls can only be read in the format they were written in: another one leaves the turn as it is."""
    begun, now = turn.state.acted_by, turn.agent.actions.name
    if begun and begun != now and unfinished(turn.session.entries):
        raise SessionError(
            f"Session {turn.session.key} is in the middle of a turn whose actions are {begun}, not {now}. "
            "Go on with it as it was begun (--actions, --profile), or fork it before that turn."
        )


def question_of(entries: Sequence[AnyEntry]) -> ParkedEntry | None:
    """The latest question that the session waits for a person to answer."""
    answered: set[str] = set()
    asked: list[ParkedEntry] = []
    for entry in reversed(entries):
        match entry:
            case AnswerEntry(call_id=call_id):
                answered.add(call_id)
            case ToolEntry(message=result):
                answered.add(result.call_id)
            case ParkedEntry():
                asked.append(entry)
            case AssistantEntry() | UserEntry() | EndEntry():
                break
    return next((entry for entry in asked if entry.call_id not in answered), None)


def nothing_left(session: Session) -> SessionError:
    """The error for a session that can't be resumed."""
    return SessionError(f"Session {session.key} has nothing left to do; give it a message.")


def recorded_result(turn: Turn, message_id: str = "") -> RunResult | None:
    """The result of the turn that message `message_id` began, or of the last turn; None if it failed."""
    entries = turn.session.entries
    if message_id:
        first = next(i for i, e in enumerate(entries) if isinstance(e, UserEntry) and e.message.id == message_id)
    else:
        ends = [i for i, entry in enumerate(entries) if isinstance(entry, EndEntry)]
        first = ends[-2] + 1 if len(ends) > 1 else 0
    messages: list[Message] = []
    failed = False
    for entry in entries[first:]:
        match entry:
            case UserEntry() if failed:  # of another turn
                return None
            case UserEntry(message=message) | AssistantEntry(message=message) | ToolEntry(message=message):
                messages.append(message)
            case EndEntry(stop_reason="error"):
                failed = True  # it may have been gone on with
            case EndEntry() as end:
                return result_of(turn, end, messages)
    return None


def result_of(turn: Turn, end: EndEntry, messages: Sequence[Message]) -> RunResult:
    """The turn's result, from the entry that ended it and its messages."""
    return RunResult(
        reply=answer_text(turn, messages),
        output=turn.value,
        iterations=end.iterations,
        usage=end.usage,
        last_call_usage=end.last_call_usage,
        retries=end.retries,
        stop_reason=end.stop_reason,
        messages=[*_in_call_order(turn.agent, messages)],
        session_key=turn.session.key,
        error=end.error,
    )


def answer_text(turn: Turn, messages: Sequence[Message]) -> str:
    """The text of the last reply, joined to the one that it continues."""
    last = next((i for i in reversed(range(len(messages))) if isinstance(messages[i], AssistantMessage)), -1)
    parts = [messages[last]] if last >= 0 else []
    if last > 0 and is_cut(messages[last - 1]):
        parts.insert(0, messages[last - 1])
    read, tools, seen = turn.state.actions.read_own, turn.agent.tools, turn.state.seen
    return "".join(read(part, tools, seen).reply for part in cast("list[AssistantMessage]", parts))


def is_cut(message: Message) -> bool:
    """Whether it is a reply that the length limit cut."""
    return isinstance(message, AssistantMessage) and message.stop_reason == "length"


def _in_call_order(agent: AgentRecord, messages: Sequence[Message]) -> Iterator[Message]:
    """The messages, with the results of each reply in the order of its calls."""
    reply = AssistantMessage([])
    for kind, group in groupby(messages, type):
        some = [*group]
        if kind is ToolResult and len(some) > 1:
            results = {result.call_id: result for result in cast("list[ToolResult]", some)}
            called = [results.pop(call.id) for call in agent.calls_of(reply) if call.id in results]
            yield from (*called, *results.values())
            continue
        if isinstance(some[-1], AssistantMessage):
            reply = some[-1]
        yield from some


def _why_not(turn: Turn, call: ToolCall, last: LastReply) -> str:
    """Why an open call isn't run; empty: it is."""
    if turn.moved or last.returned:
        return ELSEWHERE
    tool = turn.agent.tools.get(call.name)
    repeatable = tool is not None and Traits.REPEATABLE in tool.traits
    return MISSING if call.id in last.started and not repeatable else ""
