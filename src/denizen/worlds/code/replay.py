"""Going through a session again, with the model's recorded replies, to see where tools answer differently now."""

import difflib
import re
import tempfile
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from denizen.config.redact import map_text
from denizen.engine import TurnOptions, run_turn
from denizen.engine.listener import Listener
from denizen.entries import AnyEntry, AssistantEntry, CheckpointEntry, EndEntry, ToolEntry, UserEntry
from denizen.errors import DenizenError, ModelError, SessionError, ToolRefused
from denizen.events import Failed, Finished, StreamEvent
from denizen.messages import AssistantMessage, ToolCall, ToolResult, UserMessage
from denizen.not_run import MISSING, STOPPED_WHILE_RUNNING
from denizen.ports import (
    Answer,
    Ask,
    Control,
    Limits,
    ModelRequest,
    Schema,
    Session,
    Steer,
    Tool,
    ToolContext,
    Toolset,
    Traits,
)
from denizen.worlds.world import AgentHandle

REACHES_OUT = Traits.NETWORK | Traits.SENDS | Traits.PRIVATE
"""Traits of tools that aren't run again: they say what is recorded."""

_DURATION = re.compile(r"(?<![\w.])\d+(?:\.\d+)?\s?(?:ms|µs|us|s|sec|secs|seconds|min|minutes)(?![\w])")

ELSEWHERE = frozenset({"ask", "remember", "recall", "forget"})
"""Tools that neither are: a person, or the home, answers them."""


@dataclass(frozen=True, slots=True)
class Step:
    """A call of the session: the entry that asked for it, the call, what it gave, and what it gives now.

    `now` is None where it isn't run again.
    """

    entry: str
    shown: str
    was: ToolResult
    now: ToolResult | None

    @property
    def differs(self) -> bool:
        """Whether it now answers something else; how long something took doesn't count."""
        if self.now is None:
            return False
        return _timeless(self.now.text) != _timeless(self.was.text) or self.now.is_error != self.was.is_error

    def difference(self) -> str:
        """What is no longer said, and what is said instead, line by line."""
        was, now = self.was.text.splitlines(), (self.now or self.was).text.splitlines()
        lines = difflib.unified_diff(was, now, "recorded", "now", n=0, lineterm="")
        return "\n".join(lines)


def _timeless(text: str) -> str:
    return _DURATION.sub("…", text)


class _Replayed:
    """A tool that runs again, or says again what is recorded."""

    def __init__(self, tool: Tool, recorded: Mapping[str, ToolResult], *, runs: bool) -> None:
        self.name: str = tool.name
        self.shell_names: Sequence[str] = tool.shell_names
        self.traits: Traits = tool.traits
        self.schema: Schema = tool.schema
        self._tool = tool
        self._recorded = recorded
        self._runs = runs

    async def run(self, args: dict[str, Any], turn: ToolContext) -> ToolResult:
        was = self._recorded.get(turn.call_id)
        if was is None:
            raise ToolRefused("the session ended before this call had a result")
        return await self._tool.run(args, turn) if self._runs and _was_run(was) else was


class _Person(Listener):
    """Who spoke to the agent then: says again what was said, when it was said, and allows what was allowed."""

    def __init__(self, recorded: Mapping[str, ToolResult]) -> None:
        super().__init__()
        self._recorded = recorded
        self._said: deque[UserMessage | AssistantMessage] = deque()

    def begin(self, entries: Sequence[AnyEntry]) -> None:
        """Play what follows the message that began a turn."""
        said = [entry.message for entry in entries if isinstance(entry, UserEntry | AssistantEntry)]
        self._said = deque(said[1:])

    def reply(self) -> AssistantMessage | None:
        """What the model said next."""
        self.controls()
        said = self._said.popleft() if self._said else None
        return said if isinstance(said, AssistantMessage) else None

    def controls(self) -> Sequence[Control]:
        said: list[Control] = []
        while self._said and isinstance(message := self._said[0], UserMessage):
            said.append(Steer(message.text))
            self._said.popleft()
        return said

    async def ask(self, request: Ask) -> Answer:
        was = self._recorded.get(request.call_id)
        return Answer(request.call_id, allow=was is not None and _was_run(was))


class RecordedModel:
    """A model that gives each `reply` again, until that is None; it costs nothing and sees everything."""

    local = True

    def __init__(self, name: str, reply: Callable[[], AssistantMessage | None]) -> None:
        self.name = name
        self._reply = reply

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """The next reply; a failure where there are no more."""
        reply = self._reply()
        yield Finished(reply) if reply else Failed(ModelError("the recorded turn has no further reply", kind="unknown"))

    def limits(self, session_key: str = "") -> Limits:
        """No context is too long."""
        return Limits(window=10**9)

    async def close(self) -> None:
        """There is nothing to give back."""


@dataclass(frozen=True, slots=True)
class _Replay:
    """An agent of the same kind in a copy of the files, whose model is the transcript; `runs` names the tools that run
    again.
    """

    agent: AgentHandle
    project: Path
    person: _Person
    recorded: Mapping[str, ToolResult]
    runs: frozenset[str]

    async def turn(self, session: Session, message: UserMessage, entries: Sequence[AnyEntry]) -> list[Step]:
        """Go through one turn."""
        first = len(session.entries)
        with suppress(ModelError):  # the recorded turn had no further reply
            self.person.begin(entries)
            await run_turn(self.agent.record, session, message, self.person, TurnOptions(stream=False))
        now = {
            entry.message.call_id: entry.message for entry in session.entries[first:] if isinstance(entry, ToolEntry)
        }
        replies = [entry for entry in entries if isinstance(entry, AssistantEntry)]
        return [
            self._step(reply.id, call, now.get(call.id))
            for reply in replies
            for call in self.agent.record.calls_of(reply.message)
            if call.id in self.recorded
        ]

    def _step(self, entry: str, call: ToolCall, now: ToolResult | None) -> Step:
        shown = self.agent.record.actions.show(call, self.agent.record.tools)
        was = self.recorded[call.id]
        return Step(
            entry, shown, was, self._as_there(now) if now and call.name in self.runs and _was_run(was) else None
        )

    def _as_there(self, result: ToolResult) -> ToolResult:
        """The result with the project's path in the place of the copy's."""
        here, there = str(self.agent.workspace), str(self.project)
        return map_text(result, lambda text: text.replace(here, there))


async def replay(agent: AgentHandle, entries: Sequence[AnyEntry], *, start: str = "") -> AsyncGenerator[Step]:
    """Every call of the session in order, from the turn that holds entry `start` on.

    `agent` names the project: nothing of it, or of the home, is changed. Tools that reach out, and what a person or a
    memory answered, say what is recorded; commands run only where there is a sandbox. Raises DenizenError, also where
    there is no such entry.
    """
    if start and all(entry.id != start for entry in entries):
        raise SessionError(f"The session has no entry {start!r}; `denizen sessions export` shows their ids.")
    begun = not start
    async with _replaying(agent, entries) as again:
        session = await again.agent.open("replay")
        try:
            for message, turn in _turns(entries):
                begun = begun or any(entry.id == start for entry in turn)
                steps = await again.turn(session, message, turn)
                for step in steps if begun else ():
                    yield step
        finally:
            await session.close()


@asynccontextmanager
async def _replaying(agent: AgentHandle, entries: Sequence[AnyEntry]) -> AsyncGenerator[_Replay]:
    if agent.checkpoints is None:
        raise DenizenError(
            f"No checkpoints are kept in {agent.workspace}, so there is no copy of its files to replay in. "
            "They are kept in git repositories, and with the profile coder everywhere."
        )
    kept = next((entry.snapshot for entry in entries if isinstance(entry, CheckpointEntry)), "")
    recorded = {entry.message.call_id: entry.message for entry in entries if isinstance(entry, ToolEntry)}
    person = _Person(recorded)
    async with AsyncExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="denizen-replay-"))
        copy = await stack.enter_async_context(agent.checkpoints.worktree(kept or await agent.checkpoints.snapshot()))
        model = RecordedModel(agent.record.model.name, person.reply)
        again = await stack.enter_async_context(
            agent.elsewhere(copy.path, copy.linked_folders, home=Path(home), model=model)
        )
        runs = frozenset(tool.name for tool in again.record.tools if _runs(tool, again))
        tools = Toolset(_Replayed(tool, recorded, runs=tool.name in runs) for tool in again.record.tools)
        again.record = replace(
            again.record,
            tools=tools,
            states=again.record.states.with_tools(tools),
            limits=replace(again.record.limits, iterations=len(entries)),  # no turn had more
        )
        yield _Replay(again, agent.workspace, person, recorded, runs)


def _was_run(result: ToolResult) -> bool:
    """Whether the tool itself answered then: it was neither refused, nor cut off."""
    return not result.text.startswith(("not run", STOPPED_WHILE_RUNNING, MISSING))


def _runs(tool: Tool, agent: AgentHandle) -> bool:
    if tool.traits & REACHES_OUT or tool.name in ELSEWHERE:
        return False
    return Traits.EXECUTES not in tool.traits or agent.record.sandbox.confines


def _turns(entries: Sequence[AnyEntry]) -> list[tuple[UserMessage, list[AnyEntry]]]:
    """The turns of a session: the message that began each, and its entries."""
    turns: list[tuple[UserMessage, list[AnyEntry]]] = []
    over = True
    for entry in entries:
        if isinstance(entry, UserEntry) and over:
            turns.append((entry.message, []))
            over = False
        if turns:
            turns[-1][1].append(entry)
        over = over or isinstance(entry, EndEntry)
    return turns
