"""Running the tools that a model asked for."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from denizen.engine.permit import permit
from denizen.engine.tracing import record_result, tool_span
from denizen.engine.turn import Turn
from denizen.entries import StartedEntry, ToolEntry
from denizen.errors import DenizenError, ToolRefused
from denizen.events import ToolEnd, ToolStart, ToolUpdate
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult, UserPart
from denizen.ports import Answer, Ask, Tool, ToolContext, Traits

MOVES = Traits.WRITES | Traits.EXECUTES | Traits.SENDS
"""Traits that keep a call from running beside others."""

CUT_OFF = (
    "not run: the answer was cut off by the length limit, so this call may be incomplete. "
    "Make it again, smaller: write a long file in several steps."
)
CANCELLED = "not run: cancelled"
STOPPED_WHILE_RUNNING = "cancelled while it ran: its effect may be there in part"
INTERRUPTED = "[Tool result missing — session was interrupted]"
DROPPED = "not run: the user interrupted with a new message"


async def run_calls(turn: Turn, reply: AssistantMessage, calls: Sequence[ToolCall]) -> list[ToolResult]:
    """The results of `calls`, each written as it comes: calls that only read side by side, the others in order."""
    results: list[ToolResult] = []
    for batch in _batches(turn, calls):
        await turn.hear()
        if turn.interrupts:
            results += [await _record(turn, _refused(call, DROPPED)) for call in batch]
        elif reply.stop_reason == "length":
            results += [await _record(turn, _refused(call, CUT_OFF)) for call in batch]
        else:
            results += await _run_batch(turn, batch)
    return results


def _batches(turn: Turn, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
    if len(calls) == 1:
        yield list(calls)
        return
    for only_reads, group in groupby(calls, lambda call: _only_reads(turn.agent.tools.get(call.name))):
        batch = list(group)
        if only_reads:
            yield batch
        else:
            yield from ([call] for call in batch)


def _only_reads(tool: Tool | None) -> bool:
    return tool is not None and Traits.READS in tool.traits and not tool.traits & MOVES


async def _run_batch(turn: Turn, batch: list[ToolCall]) -> list[ToolResult]:
    permitted = [(call, await permit(turn, call)) for call in batch]
    if len(permitted) == 1:
        return [await _run(turn, *permitted[0])]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_run(turn, call, refusal)) for call, refusal in permitted]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


async def _run(turn: Turn, call: ToolCall, refusal: str) -> ToolResult:
    turn.emit(ToolStart(call.name, call.id, call.args))
    began = turn.agent.clock.monotonic()
    tool = turn.agent.tools.get(call.name)
    with tool_span(call.name, call.id) as span:
        if tool is None or refusal:
            result = _refused(call, refusal)
        else:
            result = await _execute(turn, call, tool)
        record_result(span, result)
    await _record(turn, result)
    duration = (turn.agent.clock.monotonic() - began) * 1000
    summary = result.text.partition("\n")[0][:200]
    turn.emit(ToolEnd(call.name, call.id, duration, result.is_error, summary, result.for_user, result.details))
    return result


async def _execute(turn: Turn, call: ToolCall, tool: Tool) -> ToolResult:
    if Traits.REPEATABLE not in tool.traits:
        await turn.append(StartedEntry(call_id=call.id, name=call.name))
    turn.seen |= tool.traits & (Traits.UNTRUSTED | Traits.PRIVATE)
    try:
        result = await tool.run(call.args, _context(turn, call))
    except ToolRefused as refused:
        return _refused(call, turn.agent.redact(str(refused)))
    except DenizenError:
        raise
    except Exception as broken:  # noqa: BLE001 (the tool runner: a tool's defect is told to the model, not fatal to the turn)
        return _refused(call, turn.agent.redact(f"{call.name} failed: {type(broken).__name__}: {broken}"))
    return _fit(turn, msgspec.structs.replace(result, call_id=call.id, name=call.name))


def _context(turn: Turn, call: ToolCall) -> ToolContext:
    agent = turn.agent

    def emit(text: str) -> None:
        turn.emit(ToolUpdate(call.name, call.id, agent.redact(text)))

    async def ask(question: str) -> Answer:
        answer = await turn.io.ask(Ask(call.id, question))
        if not isinstance(answer, Answer):
            raise ToolRefused("nobody is there to answer; go on without, and say what you assumed")
        return answer

    return ToolContext(
        session_key=turn.session.key,
        call_id=call.id,
        workspace=agent.workspace,
        clock=agent.clock,
        emit=emit,
        ask=ask,
        restricted=agent.config.agent.restrict_to_workspace,
        readable=[skill.path.parent for skill in agent.skills],
        private=agent.home,
    )


def _fit(turn: Turn, result: ToolResult) -> ToolResult:
    """The result without secrets, cut to what the model may get."""
    limit = turn.agent.config.agent.max_tool_result_chars
    parts: list[UserPart] = []
    room, total = limit, len(result.text)
    for part in result.content:
        if isinstance(part, Text):
            text = turn.agent.redact(part.text)
            parts.append(part if text == part.text and len(text) <= room else Text(text[:room]))
            room = max(room - len(text), 0)
        else:
            parts.append(part)
    if total > limit:
        parts.append(Text(f"\n[cut: {total - limit} of {total} characters; ask for a smaller part to see the rest]"))
    return result if parts == result.content else msgspec.structs.replace(result, content=parts)


def _refused(call: ToolCall, why: str) -> ToolResult:
    return ToolResult(call.id, call.name, [Text(why)], is_error=True)


async def _record(turn: Turn, result: ToolResult) -> ToolResult:
    await turn.append(ToolEntry(message=result))
    return result
