"""Replays a session with the model's recorded replies, to see where tools give other results now."""

import difflib
import re
import tempfile
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from denizen.config.redact import map_text
from denizen.engine import AgentRecord, TurnOptions, run_turn
from denizen.engine.callback_host import CallbackHost
from denizen.entries import AnyEntry, AssistantEntry, CheckpointEntry, EndEntry, ToolEntry, UserEntry
from denizen.errors import DenizenError, ModelError, SessionError, ToolRefused
from denizen.events import Failed, Finished, StreamEvent
from denizen.messages import AssistantMessage, ToolResult, UserMessage
from denizen.ports.host import Answer, Ask, Control, NoControls, Steer
from denizen.ports.model import Limits, ModelRequest, Schema
from denizen.ports.tool import Tool, ToolContext, Toolset, Traits
from denizen.text.not_run import MISSING, STOPPED_WHILE_RUNNING
from denizen.worlds.world import AgentHandle

NOT_REPLAYED_TRAITS = Traits.NETWORK | Traits.SENDS | Traits.CHANGES | Traits.PRIVATE
"""Traits of tools that aren't run again: they give their recorded results."""

_DURATION = re.compile(r"(?<![\w.])\d+(?:\.\d+)?\s?(?:ms|µs|us|s|sec|secs|seconds|min|minutes)(?![\w])")

NOT_REPLAYED_TOOLS = frozenset({"ask", "remember", "recall", "forget"})
"""Tools that aren't run again either: a person, or the home, answers them."""


@dataclass(frozen=True, slots=True)
class ReplayedCall:
    """A call of the session: the entry that made it, the call, its result then, and its result now.

    `now` is None if it isn't run again.
    """

    entry: str
    shown: str
    was: ToolResult
    now: ToolResult | None

    @property
    def differs(self) -> bool:
        """Whether the result is another one now; how long something took doesn't count."""
        if self.now is None:
            return False
        now, was = (_DURATION.sub("…", result.text) for result in (self.now, self.was))
        return now != was or self.now.is_error != self.was.is_error

    def difference(self) -> str:
        """How the result now differs from the recorded one, line by line."""
        was, now = self.was.text.splitlines(), (self.now or self.was).text.splitlines()
        return "\n".join(difflib.unified_diff(was, now, "recorded", "now", n=0, lineterm=""))


class _ReplayTool:
    """A tool that runs again, or gives its recorded result."""

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


class _RecordedPerson(CallbackHost):
    """The person of the session: says again what they said, when they said it, and allows what they allowed."""

    def __init__(self, recorded: Mapping[str, ToolResult]) -> None:
        super().__init__()
        self._recorded = recorded
        self._said: deque[UserMessage | AssistantMessage] = deque()

    def begin(self, entries: Sequence[AnyEntry]) -> None:
        """Play back what follows the message that began a turn."""
        said = [entry.message for entry in entries if isinstance(entry, UserEntry | AssistantEntry)]
        self._said = deque(said[1:])

    def reply(self) -> AssistantMessage | None:
        """The model's next reply."""
        self.controls()
        said = self._said.popleft() if self._said else None
        return said if isinstance(said, AssistantMessage) else None

    def controls(self) -> Sequence[Control]:
        said: list[Control] = []
        while self._said and isinstance(message := self._said[0], UserMessage):
            said.append(Steer(message.text))
            self._said.popleft()
        return said

    async def changed(self) -> None:
        """Never return: the model's recorded reply comes at once, and is never cut short."""
        await NoControls().changed()

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
        """The next reply; a failure if there are no more."""
        reply = self._reply()
        yield Finished(reply) if reply else Failed(ModelError("the recorded turn has no further reply", kind="unknown"))

    def limits(self, session_key: str = "") -> Limits:
        """No context is too long."""
        return Limits(window=10**9)

    async def close(self) -> None:
        """There is nothing to give back."""


async def replay(agent: AgentHandle, entries: Sequence[AnyEntry], *, start: str = "") -> AsyncGenerator[ReplayedCall]:
    """Every call of the session in order, from the turn that holds entry `start` on.

    `agent` names the project: nothing in it, or in the home, is changed. Tools that reach out give the recorded result,
    and so do questions to a person and memory; commands run only where there is a sandbox. Raises DenizenError, also
    if there is no such entry.
    """
    if start and all(entry.id != start for entry in entries):
        raise SessionError(f"The session has no entry {start!r}; `denizen sessions export` shows the ids.")
    if agent.checkpoints is None:
        raise DenizenError(
            f"No checkpoints are kept in {agent.workspace}, so there is no copy of its files to replay in. "
            "They are kept in git repositories, and with the profile coder everywhere."
        )
    snapshot = next((entry.snapshot for entry in entries if isinstance(entry, CheckpointEntry)), "")
    entries = _with_ids(agent.record, entries)
    recorded = {entry.message.call_id: entry.message for entry in entries if isinstance(entry, ToolEntry)}
    person = _RecordedPerson(recorded)
    async with AsyncExitStack() as stack:
        # An agent of the same kind in a copy of the files, whose model is the transcript
        home = stack.enter_context(tempfile.TemporaryDirectory(prefix="denizen-replay-"))
        first_files = snapshot or await agent.checkpoints.snapshot()
        copy = await stack.enter_async_context(agent.checkpoints.worktree(first_files))
        model = RecordedModel(agent.record.model.name, person.reply)
        again = await stack.enter_async_context(
            agent.elsewhere(copy.path, copy.linked_folders, home=Path(home), model=model)
        )
        runs = frozenset(tool.name for tool in again.record.tools if _runs(tool, again))
        tools = Toolset(_ReplayTool(tool, recorded, runs=tool.name in runs) for tool in again.record.tools)
        record = replace(
            again.record,
            tools=tools,
            limits=replace(again.record.limits, iterations=len(entries)),  # no turn had more
        )
        again.record = record
        session = await again.open("replay")
        stack.push_async_callback(session.close)
        is_wanted = not start
        for message, turn in _turns(entries):
            is_wanted = is_wanted or any(entry.id == start for entry in turn)
            first = len(session.entries)
            with suppress(ModelError):  # the recorded turn had no further reply
                person.begin(turn)
                await run_turn(record, session, message, person, TurnOptions(stream=False))
            if not is_wanted:
                continue
            new = (entry.message for entry in session.entries[first:] if isinstance(entry, ToolEntry))
            results = {result.call_id: result for result in new}
            asked = (
                (each, call)
                for each in turn
                if isinstance(each, AssistantEntry)
                for call in record.calls_of(each.message)
            )
            for entry, call in asked:
                if was := recorded.get(call.id):
                    now = results.get(call.id) if call.name in runs and _was_run(was) else None
                    if now:  # with the project's path in place of the copy's
                        now = map_text(now, lambda text: text.replace(str(again.workspace), str(agent.workspace)))
                    yield ReplayedCall(entry.id, record.shown(call), was, now)


def _with_ids(record: AgentRecord, entries: Sequence[AnyEntry]) -> list[AnyEntry]:
    """The entries, with an id for each reply that has none: with it, its calls keep theirs when they are replayed."""
    found, ids = list[AnyEntry](), dict[str, str]()
    for entry in entries:
        if isinstance(entry, AssistantEntry) and not entry.message.id:
            reply = msgspec.structs.replace(entry.message, id=entry.id)
            old, new = record.calls_of(entry.message), record.calls_of(reply)
            ids = {before.id: after.id for before, after in zip(old, new, strict=True)}
            entry = msgspec.structs.replace(entry, message=reply)
        elif isinstance(entry, ToolEntry):
            call_id = ids.get(entry.message.call_id, entry.message.call_id)
            entry = msgspec.structs.replace(entry, message=msgspec.structs.replace(entry.message, call_id=call_id))
        found.append(entry)
    return found


def _was_run(result: ToolResult) -> bool:
    """Whether the tool itself answered then: it was neither refused, nor cut off."""
    return not result.text.startswith(("not run", STOPPED_WHILE_RUNNING, MISSING))


def _runs(tool: Tool, agent: AgentHandle) -> bool:
    if tool.traits & NOT_REPLAYED_TRAITS or tool.name in NOT_REPLAYED_TOOLS:
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
