"""Going on where a crash, a cancelled turn or a parked one stopped (design, "Resuming")."""

from collections.abc import Sequence

from denizen.engine.calls import CANCELLED, INTERRUPTED, STOPPED_WHILE_RUNNING, run_calls
from denizen.engine.turn import Turn
from denizen.entries import AnyEntry, AssistantEntry, EndEntry, StartedEntry, ToolEntry, UserEntry
from denizen.events import RunResult
from denizen.messages import AssistantMessage, Message, Text, ToolCall, ToolResult
from denizen.ports import Traits


async def settle(turn: Turn) -> None:
    """Give every open call its result: run what never started or may run again, report the others as interrupted."""
    reply, calls, started = open_calls(turn.session.entries)
    if reply is None or not calls:
        return
    turn.seen = _seen(turn)
    again = [call for call in calls if call.id not in started or _repeatable(turn, call)]
    for call in calls:
        if call not in again:
            await _close(turn, call, INTERRUPTED)
    await run_calls(turn, reply, again)


async def close_calls(turn: Turn) -> None:
    """Give every open call a result that says it was cancelled."""
    _, calls, started = open_calls(turn.session.entries)
    for call in calls:
        await _close(turn, call, STOPPED_WHILE_RUNNING if call.id in started else CANCELLED)


def open_calls(entries: Sequence[AnyEntry]) -> tuple[AssistantMessage | None, list[ToolCall], set[str]]:
    """The last answer, its calls without a result, and which calls had started."""
    started: set[str] = set()
    settled: set[str] = set()
    for entry in reversed(entries):
        match entry:
            case ToolEntry(message=result):
                settled.add(result.call_id)
            case StartedEntry(call_id=call_id):
                started.add(call_id)
            case AssistantEntry(message=reply):
                return reply, [call for call in reply.tool_calls if call.id not in settled], started
            case UserEntry() | EndEntry():
                break
            case _:
                pass
    return None, [], started


def unfinished(entries: Sequence[AnyEntry]) -> bool:
    """Whether the last turn began and didn't end."""
    for entry in reversed(entries):
        if isinstance(entry, EndEntry):
            return False
        if isinstance(entry, (UserEntry, AssistantEntry, ToolEntry)):
            return True
    return False


def recorded(entries: Sequence[AnyEntry], message_id: str, session_key: str) -> RunResult | None:
    """The result of the turn that the message `message_id` began, where it has ended already."""
    first = next(i for i, e in enumerate(entries) if isinstance(e, UserEntry) and e.message.id == message_id)
    messages: list[Message] = []
    for entry in entries[first:]:
        match entry:
            case UserEntry(message=message) | AssistantEntry(message=message) | ToolEntry(message=message):
                messages.append(message)
            case EndEntry() as end:
                return result_of(end, messages, None, session_key)
            case _:
                pass
    return None


def result_of(end: EndEntry, messages: Sequence[Message], output: object, session_key: str) -> RunResult:
    """The turn's result, from the entry that ended it and its messages."""
    replies = [message.text for message in messages if isinstance(message, AssistantMessage)]
    return RunResult(
        reply=replies[-1] if replies else "",
        output=output,
        iterations=end.iterations,
        usage=end.usage,
        last_call_usage=end.last_call_usage,
        retries=end.retries,
        stop_reason=end.stop_reason,
        messages=messages,
        session_key=session_key,
        error=end.error,
    )


def _seen(turn: Turn) -> Traits:
    """What the turn had already seen of other people's text and of the user's private data."""
    seen = Traits.NONE
    for entry in reversed(turn.session.entries):
        if isinstance(entry, EndEntry):
            break
        if isinstance(entry, ToolEntry) and (tool := turn.agent.tools.get(entry.message.name)):
            seen |= tool.traits & (Traits.UNTRUSTED | Traits.PRIVATE)
    return seen


def _repeatable(turn: Turn, call: ToolCall) -> bool:
    tool = turn.agent.tools.get(call.name)
    return tool is not None and Traits.REPEATABLE in tool.traits


async def _close(turn: Turn, call: ToolCall, why: str) -> None:
    await turn.append(ToolEntry(message=ToolResult(call.id, call.name, [Text(why)], is_error=True)))
