"""Running the tools that a model asks for."""

import asyncio
import hashlib
import threading
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import partial
from itertools import groupby
from typing import Any

import msgspec

from denizen.engine.hooks import call_hooks
from denizen.engine.permit import answer_to, permit
from denizen.engine.snapshots import check_workspace, snapshot_after, snapshot_before
from denizen.engine.spending import spent_usd
from denizen.engine.subagents import run_subagent
from denizen.engine.tracing import UNTRACED, record_result, tool_span
from denizen.engine.turn import Turn
from denizen.engine.turn_over import TurnOver
from denizen.entries import StartedEntry, ToolEntry
from denizen.errors import DenizenError
from denizen.events import ToolEnd, ToolStart, ToolUpdate
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult, UserPart
from denizen.ports import EFFECTS, Answer, Ask, TerminalHost, Tool, ToolContext, Traits, save_files
from denizen.text.not_run import DROPPED, NOT_RUN


class Progress:
    """Passes a call's output on while it runs, without secrets; also from the thread that a plain function runs in."""

    def __init__(self, turn: Turn, call: ToolCall) -> None:
        self._turn = turn
        self._call = call
        self._stream = turn.agent.redactor.stream()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._over = False

    def emit(self, text: str) -> None:
        if threading.get_ident() == self._thread:
            self._show(self._stream.feed(text))
        else:
            self._loop.call_soon_threadsafe(lambda: self._show(self._stream.feed(text)))

    def end(self) -> None:
        """Show what was held back; nothing comes after it."""
        self._show(self._stream.flush())
        self._over = True

    def _show(self, text: str) -> None:
        if text and not self._over:
            self._turn.emit(ToolUpdate(self._call.name, self._call.id, text))


async def run_calls(turn: Turn, reply: AssistantMessage, calls: Sequence[ToolCall]) -> list[ToolResult]:
    """The results of `calls`, each written as it comes: calls that only read side by side, the others in order."""
    await save_files(turn.io, calls)
    results: list[ToolResult] = []
    for batch in _batches(turn, calls):
        await turn.hear()
        if why := DROPPED if turn.controls.interrupts else NOT_RUN.get(reply.stop_reason, ""):
            results += [await record(turn, refused(call, why)) for call in batch]
        else:
            results += await _run_batch(turn, batch)
    await snapshot_after(turn)
    return results


def refused(call: ToolCall, why: str) -> ToolResult:
    """The result of a call that was refused or failed."""
    return ToolResult(call.id, call.name, [Text(why)], is_error=True)


async def record(turn: Turn, result: ToolResult) -> ToolResult:
    """Write a result, with the call id that the provider used."""
    result = msgspec.structs.replace(result, wire_id=turn.state.wire_ids.get(result.call_id, ""))
    await turn.append(ToolEntry(message=result))
    return result


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
    return tool is not None and Traits.READS in tool.traits and not tool.traits & EFFECTS


async def _run_batch(turn: Turn, batch: list[ToolCall]) -> list[ToolResult]:
    permitted = [(call, await permit(turn, call)) for call in batch]
    if len(permitted) == 1:
        return [await _run(turn, *permitted[0])]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_run_or_park(turn, call, refusal)) for call, refusal in permitted]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    results: list[ToolResult] = []
    for task in tasks:
        if isinstance(outcome := task.result(), TurnOver):
            raise outcome
        results.append(outcome)
    return results


async def _run_or_park(turn: Turn, call: ToolCall, refusal: str) -> ToolResult | TurnOver:
    """The result, or the `TurnOver` of a turn that must wait for an answer: parallel calls still finish."""
    try:
        return await _run(turn, call, refusal)
    except TurnOver as over:
        if over.reason == "parked":
            return over
        raise


async def _run(turn: Turn, call: ToolCall, refusal: str) -> ToolResult:
    turn.emit(ToolStart(call.name, call.id, call.args))
    began = turn.agent.clock.monotonic()
    tool = turn.agent.tools.get(call.name)
    with tool_span(call.name, call.id) if turn.traced else UNTRACED as span:
        result = refused(call, refusal) if tool is None or refusal else await _execute(turn, call, tool)
        record_result(span, result)
    await record(turn, result)
    if turn.agent.hooks and not refusal:
        await call_hooks(turn, "after_tool", call.name, args=call.args, result=result.text, is_error=result.is_error)
    duration = (turn.agent.clock.monotonic() - began) * 1000
    turn.emit(tool_end(result, duration))
    return result


def tool_end(result: ToolResult, duration_ms: float = 0.0) -> ToolEnd:
    """The event that shows a result."""
    return ToolEnd(
        result.name,
        result.call_id,
        duration_ms,
        result.is_error,
        summary(result),
        result.for_user,
        result.details,
        result.text,
    )


def summary(result: ToolResult) -> str:
    """One line for the screen: the first; for a failed command the exit code and the last line, which says why."""
    output, ended, code = f"\n{result.text}".rpartition("\n[exit code ")
    if not (result.is_error and ended):
        return result.text.partition("\n")[0][:200]
    last = output.strip().rpartition("\n")[2].strip()
    return f"exit code {code.partition(']')[0]}: {last or 'no output'}"[:200]


async def _execute(turn: Turn, call: ToolCall, tool: Tool) -> ToolResult:
    await check_workspace(turn)
    if turn.agent.hooks and (words := await call_hooks(turn, "before_tool", call.name, args=call.args)):
        return refused(call, f"not run: {words}")
    await snapshot_before(turn, tool)
    if Traits.REPEATABLE not in tool.traits:
        await turn.append(StartedEntry(call_id=call.id, name=call.name))
    progress = Progress(turn, call)
    try:
        args = _copied(turn.agent.policy.arguments(call, tool, approved=turn.state.approved))
        running = tool.run(args, _context(turn, call, tool, progress))
        result = _within_limit(turn, call, await turn.controls.run_until_stopped(running))
    except TurnOver:  # it asked the person, and nobody is there
        raise
    except asyncio.CancelledError:
        if _cancelled():
            raise
        result = refused(call, f"{call.name} gave up: it cancelled itself")
    except DenizenError as why:  # ToolRefused above all; what else a tool raises of ours is the model's to know, too
        result = refused(call, str(why))
    except Exception as broken:  # noqa: BLE001 (the tool runner: its defects are the model's to know)
        result = refused(call, f"{call.name} failed: {type(broken).__name__}: {broken}")
    finally:
        progress.end()
    if _cancelled():  # a tool that swallowed it
        raise asyncio.CancelledError
    return turn.agent.redactor.message(result)


def _copied(args: dict[str, Any]) -> dict[str, Any]:
    """Arguments that the tool may change: the session keeps the originals."""
    return {name: value if type(value) is str else deepcopy(value) for name, value in args.items()}


def _cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _context(turn: Turn, call: ToolCall, tool: Tool, progress: Progress) -> ToolContext:
    agent = turn.agent

    asked = 0

    async def ask(question: str) -> Answer:
        nonlocal asked
        asked += 1
        # A call that was permitted has an answer under its own id. Once this one is there, the call runs again.
        question_id = call.id if Traits.REPEATABLE in tool.traits else own_question_id(call.id, f"{asked} {question}")
        given = await answer_to(turn, Ask(question_id, question))
        return Answer(call.id, given.allow, given.text, given.scope, given.unasked)

    return ToolContext(
        session_key=turn.session.key,
        call_id=call.id,
        workspace=agent.workspace,
        clock=agent.clock,
        emit=progress.emit,
        ask=ask,
        channel=turn.options.channel,
        chat=turn.options.chat,
        depth=turn.options.depth,
        spent_usd=spent_usd(turn),
        restricted=agent.restricted,
        readable=agent.readable,
        private=agent.home,
        entries=turn.session.entries,
        commands=lambda reply: {call.id: agent.shown(call) for call in agent.calls_of(reply)},
        in_sight=turn.state.in_sight,
        said_by_user=turn.state.user_words.have_all_words,
        denied=agent.policy.denied_paths(tool),
        subagent=partial(run_subagent, turn, call.id, progress.emit),
        run_command=partial(turn.io.run_command, call.id) if isinstance(turn.io, TerminalHost) else None,
    )


def own_question_id(call_id: str, question: str) -> str:
    """The id of a question that a running call asks."""
    return f"{call_id}.{hashlib.sha256(question.encode(errors='replace')).hexdigest()[:8]}"


def _within_limit(turn: Turn, call: ToolCall, result: ToolResult) -> ToolResult:
    """The result under the call's id, cut to the limit. Raises TypeError if it isn't a ToolResult."""
    if not isinstance(result, ToolResult) or not all(isinstance(part, UserPart) for part in result.content):
        raise TypeError("its result is not a ToolResult of texts and images")
    result = msgspec.structs.replace(result, call_id=call.id, name=call.name)
    limit, total = turn.agent.limits.result_chars, len(result.text)
    if total <= limit:
        return result
    parts: list[UserPart] = []
    room = limit
    for part in result.content:
        if isinstance(part, Text):
            parts += [Text(part.text[:room])] if room else []
            room = max(room - len(part.text), 0)
        else:
            parts.append(part)
    cut = Text(f"\n[cut: {total - limit} of {total} characters; ask for a smaller part to see the rest]")
    return msgspec.structs.replace(result, content=[*parts, cut])
