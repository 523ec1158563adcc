"""Subagents: turns that a turn's call begins, each in a session of its own, and how their results reach it."""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import msgspec

from denizen.engine.permit import park
from denizen.engine.record import AgentRecord
from denizen.engine.session_state import IN_SIGHT, SUBAGENT_OF, InSight, SubagentOf, state_of
from denizen.engine.snapshots import snapshot_before
from denizen.engine.spending import spent_by_subagents
from denizen.engine.turn import Turn, TurnOptions
from denizen.entries import AnyEntry, AssistantEntry, CompactionEntry, ParkedEntry, StateEntry, ToolEntry
from denizen.errors import DenizenError, ToolRefused
from denizen.events import Notice, RunEvent, RunResult, ToolEnd, ToolStart, ToolUpdate
from denizen.messages import Text, ToolCall, ToolResult, UserMessage
from denizen.ports import Answer, Ask, Control, Parked, Session, Stop, Traits, save_files
from denizen.runtime.cancellation import first_completed
from denizen.runtime.clock import wait_until

MAX_DEPTH = 3
"""How many turns may be around a subagent's."""
_MAX_CALL_CHARS = 200  # characters of a call in a line of progress


def task_id(entries: Sequence[AnyEntry], call_id: str) -> str:
    """The id of a call's task, the same after a crash, and unique although models reuse call ids."""
    reply = next((entry.id for entry in reversed(entries) if isinstance(entry, AssistantEntry)), "")
    return f"{reply}:{call_id}"


def subagent_key(parent: str, task: str) -> str:
    """The key of a subagent's session, or of its question, made from its parent's and the task's id."""
    return f"{parent}~{hashlib.sha256(task.encode()).hexdigest()[:8]}"


def check_depth(depth: int) -> None:
    """Raises ToolRefused if a turn at that depth may have no subagents."""
    if depth >= MAX_DEPTH:
        raise ToolRefused(f"subagents are at most {MAX_DEPTH} deep: do it yourself")


async def run_subagent(parent: Turn, call_id: str, show: Callable[[str], None], task: str, name: str) -> ToolResult:
    """Let a subagent do a task within the parent's turn, and wait for it; `show` gets what it does, a line each.

    It spends from the parent's budget and asks the parent's host. If nobody is there, the parent is parked, and both
    go on after the answer. Raises ToolRefused if it can't begin.
    """
    check_depth(parent.options.depth)
    agent = parent.agent.subagent(parent.agent, name)
    if parent.run is None:
        raise ToolRefused("no subagent can work here: do it yourself")
    async with parent.places:
        for tool in agent.tools:  # the parent's checkpoints are the subagent's, too
            await snapshot_before(parent, tool)
        agent = replace(agent, checkpoints=None)
        message = UserMessage([Text(task)], task_id(parent.session.entries, call_id))
        key = subagent_key(parent.session.key, message.id)
        session = await agent.store.open(key, workspace=str(agent.workspace), profile=agent.name)
        try:
            await link(session, parent.session.key, call_id, parent.state.in_sight)
            options = TurnOptions(
                stream=False,
                read_only=parent.options.read_only,
                channel=parent.options.channel,
                chat=parent.options.chat,
                parent=parent,
                depth=parent.options.depth + 1,
                resumes=parent.options.resumes,
            )
            host = _ParentHost(parent, agent, show, call_id, session)
            turn = parent.run(agent, session, message, host, options)
            result = await result_in_time(agent, session, turn, host.stop)
            if host.question and result.details["stop_reason"] == "parked":
                await park(parent, host.question)
            return result
        finally:
            await session.close()


async def link(session: Session, parent: str, call_id: str, in_sight: Traits) -> None:
    """Record in a subagent's session, once, its parent and what the parent had in sight."""
    if any(isinstance(entry, StateEntry) and entry.name == SUBAGENT_OF for entry in session.entries):
        return
    await session.append(StateEntry(name=IN_SIGHT, value=msgspec.to_builtins(InSight.of(in_sight))))
    await session.append(StateEntry(name=SUBAGENT_OF, value=msgspec.to_builtins(SubagentOf(parent, call_id))))


async def result_in_time(
    agent: AgentRecord, session: Session, turn: Coroutine[Any, Any, RunResult], stop: Callable[[], None]
) -> ToolResult:
    """The result of a subagent's turn, for the parent's model.

    When its time is over, the turn is cancelled, after `stop` was called.
    """
    seconds, clock = agent.limits.subagent_seconds, agent.clock
    deadline = clock.monotonic() + seconds - _worked(session.entries, clock.now())
    async with first_completed(turn, wait_until(clock, deadline)) as (running, _):
        if not running.done():
            stop()
    reason = "error"
    try:
        result = running.result()
        reason, (text, failed) = result.stop_reason, _words(result)
    except asyncio.CancelledError:
        reason = "cancelled"
        text, failed = f"The subagent was stopped: its {seconds / 60:g} minutes are over.", True
    except DenizenError as why:
        text, failed = f"The subagent failed: {why}", True
    if failed:
        text = f"{text} What it did until then stands, and is in session {session.key}."
    in_sight = InSight.of(state_of(agent, session).in_sight)
    details = {
        "session": session.key,
        "stop_reason": reason,
        "private": in_sight.private,
        "untrusted": in_sight.untrusted,
        "spent_usd": _spent(agent, session.entries),
    }
    return ToolResult("", "", [Text(text)], is_error=failed, details=details)


def _worked(entries: Sequence[AnyEntry], now: datetime) -> float:
    """Seconds since a subagent's session began, without those in which it waited for a person."""
    times = [(entry.at or now, isinstance(entry, ParkedEntry)) for entry in entries]
    steps = pairwise([*times, (now, False)])
    return sum((after - before).total_seconds() for (before, parked), (after, _) in steps if not parked)


def _spent(agent: AgentRecord, entries: Sequence[AnyEntry]) -> float:
    """US dollars spent by a subagent's session and its own subagents."""
    usages = [entry.message.usage for entry in entries if isinstance(entry, AssistantEntry)]
    usages += [entry.usage for entry in entries if isinstance(entry, CompactionEntry)]
    results = [entry.message for entry in entries if isinstance(entry, ToolEntry)]
    return sum(usage.cost_usd or 0.0 for usage in usages) + spent_by_subagents(agent, results)


def _words(result: RunResult) -> tuple[str, bool]:
    """The words for the parent, and whether the subagent failed."""
    if result.stop_reason == "answered":
        return result.reply or "The subagent is done, and says nothing.", False
    why = result.error or result.stop_reason.replace("_", " ")
    return f"The subagent stopped before it was done: {why}.".replace("..", "."), True


class _ParentHost:
    """The host of a subagent's turn: it asks the parent's host, one question at a time, and a stop there ends it.

    `question` is the one that nobody was there to answer.
    """

    def __init__(
        self, parent: Turn, agent: AgentRecord, show: Callable[[str], None], call_id: str, session: Session
    ) -> None:
        self._parent = parent
        self._agent = agent
        self._show = show
        self._call_id = call_id
        self._session = session
        self._stopped = False
        self.question: Ask | None = None

    def stop(self) -> None:
        self._stopped = True

    def emit(self, event: RunEvent) -> None:
        match event:
            case ToolStart(name, call_id, args):
                shown = " ".join(self._agent.shown(ToolCall(call_id, name, args)).split())
                if len(shown) > _MAX_CALL_CHARS:
                    shown = f"{shown[: _MAX_CALL_CHARS - 1]}…"
                self._show(f"{shown}\n")
            case ToolUpdate(tool_name=name, text=text) if self._delegates(name):
                self._show(text)
            case ToolEnd(is_error=True, summary=summary):
                self._show(f"  {summary}\n")
            case Notice():
                self._parent.emit(event)

    def controls(self) -> Sequence[Control]:
        return [Stop()] if self._parent.controls.listen() or self._stopped else []

    async def changed(self) -> None:
        await self._parent.controls.changed()

    async def ask(self, request: Ask) -> Answer | Parked:
        call_id = subagent_key(self._call_id, task_id(self._session.entries, request.call_id))
        if given := self._parent.state.answers.get(call_id):
            return Answer(request.call_id, given.allow, given.text, given.scope, given.unasked)
        words = f"For a subagent: {request.question}"
        question = msgspec.structs.replace(request, call_id=call_id, question=words)
        async with self._parent.asking:
            answer = await self._parent.io.ask(question)
        if isinstance(answer, Parked):
            self.question = question
        return answer

    async def save(self, calls: Sequence[ToolCall]) -> None:
        await save_files(self._parent.io, calls)

    def _delegates(self, name: str) -> bool:
        tool = self._agent.tools.get(name)
        return tool is not None and Traits.DELEGATES in tool.traits
