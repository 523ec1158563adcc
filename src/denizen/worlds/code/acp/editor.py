"""An editor as a host: events become updates, in order, and questions become requests."""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import acp
import msgspec
from acp import schema
from acp.helpers import ToolCallContentVariant, tool_terminal_ref
from acp.interfaces import Client

from denizen.entries import AnyEntry, EndEntry
from denizen.events import (
    Compacted,
    Done,
    LlmEnd,
    LlmStart,
    LlmStream,
    Notice,
    Retry,
    RunEvent,
    RunResult,
    TextDelta,
    ThinkingDelta,
    ToolEnd,
    ToolStart,
    ToolUpdate,
    Withdrawn,
)
from denizen.messages import AssistantMessage, ToolCall, ToolResult
from denizen.ports import Answer, Ask, NoControls, Parked, Sandboxed, Traits
from denizen.tools.policy.call_files import file_of
from denizen.tools.programs import process
from denizen.worlds.code.acp.buffers import Buffers
from denizen.worlds.code.acp.open_session import AUTO, READ_ONLY, OpenSession
from denizen.worlds.code.acp.terminals import Terminals, TerminalUnavailableError
from denizen.worlds.world import AgentHandle

Update = (
    schema.AgentMessageChunk
    | schema.AgentThoughtChunk
    | schema.AgentPlanUpdate
    | schema.ToolCallStart
    | schema.ToolCallProgress
    | schema.UsageUpdate
)

MAX_OUTPUT_CHARS = 4000
"""The last characters of a running call's output, which are shown."""

MAX_TITLE_CHARS = 80
"""Characters."""

_KINDS: Mapping[str, schema.ToolKind] = {
    "grep": "search",
    "find": "search",
    "analyze": "search",
    "recall": "search",
    "web_fetch": "fetch",
    "task": "think",
    "note": "think",
    "keep": "think",
}
_KINDS_BY_TRAIT: Mapping[Traits, schema.ToolKind] = {
    Traits.EXECUTES: "execute",
    Traits.WRITES: "edit",
    Traits.READS: "read",
}
_STATES: Mapping[str, schema.PlanEntryStatus] = {"todo": "pending", "doing": "in_progress"}

OPTIONS = [
    schema.PermissionOption(option_id="once", name="Allow", kind="allow_once"),
    schema.PermissionOption(option_id="session", name="Allow for this session", kind="allow_always"),
    schema.PermissionOption(option_id="always", name="Always allow", kind="allow_always"),
    schema.PermissionOption(option_id="no", name="Refuse", kind="reject_once"),
]

_FORM = schema.ElicitationSchema(
    properties={"answer": schema.ElicitationStringPropertySchema(type="string", title="Answer")}, required=["answer"]
)


class EditorIO(NoControls):
    """The editor as the host of one turn of session `session_id`; `send` runs during the turn until it is cancelled.

    No controls come in: cancelling ends the turn's task.
    `has_forms`: it can show a question with a field for the answer. `has_buffers`: it reads and writes files as it
    shows them.
    """

    def __init__(
        self, client: Client, session_id: str, opened: OpenSession, *, has_forms: bool, has_buffers: bool
    ) -> None:
        self._client = client
        self._session_id = session_id
        self._opened = opened
        self._has_forms = has_forms
        self._updates = Updates(opened.agent, opened.session.entries)
        record = opened.agent.record
        self._buffers = Buffers(client, session_id, opened.agent, record.clock.now()) if has_buffers else None
        self._terminals = Terminals(client, session_id, record.home)
        self._events: asyncio.Queue[RunEvent] = asyncio.Queue()
        self._streamed = False
        self._failed: Exception | None = None

    def emit(self, event: RunEvent) -> None:
        """Queue the event; an answer that didn't stream is shown when it is final."""
        match event:
            case LlmStart():
                self._streamed = False
            case LlmStream(event=TextDelta()):
                self._streamed = True
            case Done(result=RunResult(stop_reason="answered", reply=reply)) if not self._streamed:
                self._events.put_nowait(LlmStream(TextDelta(reply)))
        self._events.put_nowait(event)

    async def ask(self, request: Ask) -> Answer | Parked:
        """Ask for permission, unless the user always allows it, or for the answer to a question of the agent."""
        await self._events.join()
        if not request.tool_name:
            if not self._has_forms:
                return Parked()
            mode = schema.ElicitationFormSessionMode(
                session_id=self._session_id, tool_call_id=request.call_id, requested_schema=_FORM
            )
            given = await self._client.create_elicitation(request.question, mode)
            if isinstance(given, schema.AcceptElicitationResponse) and given.content:
                return Answer(request.call_id, allow=True, text=str(given.content["answer"]))
            return Answer(request.call_id, allow=False, text="the user didn't answer", unasked=True)
        if self._opened.mode == AUTO and not request.quotation:
            return Answer(request.call_id, allow=True)
        call = self._updates.announced(request)
        await self._client.session_update(self._session_id, call)
        update = schema.ToolCallUpdate(**call.model_dump(exclude={"session_update"}))
        options = [each for each in OPTIONS if each.kind != "allow_always" or not request.quotation]
        answer = await self._client.request_permission(self._session_id, update, options)
        match answer.outcome:
            case schema.AllowedOutcome(option_id="once" | "session" | "always" as scope):
                return Answer(request.call_id, allow=True, scope=scope)
            case _:
                return Answer(request.call_id, allow=False)

    async def save(self, calls: Sequence[ToolCall]) -> None:
        """Save what the user typed into the files that the calls name, unless the mode is read-only."""
        if self._buffers and self._opened.mode != READ_ONLY:
            await self._events.join()  # edits have reached the editor
            await self._buffers.save(calls)

    async def run_command(
        self, call_id: str, command: Sandboxed, folder: Path, *, seconds: float, take: Callable[[bytes], None]
    ) -> int | None:
        """Run the command of a call in a terminal of the editor, or without one if the editor can't."""
        if self._opened.has_terminals:
            show = partial(self._show_terminal, call_id)
            try:
                return await self._terminals.run(command, folder, seconds=seconds, take=take, show=show)
            except TerminalUnavailableError as why:
                self._opened.has_terminals = False
                self._updates.leave_terminal(call_id)
                words = f"Commands run without the editor's terminals, which can't be used: {why}"
                self.emit(Notice(words, "warning"))
        return await process.run(command, folder, seconds=seconds, take=take)

    async def _show_terminal(self, call_id: str, terminal_id: str, found: str) -> None:
        await self._events.join()  # the editor knows the call
        await self._client.session_update(self._session_id, self._updates.in_terminal(call_id, terminal_id, found))

    async def send(self) -> None:
        """Send the queued events in order, until cancelled; after a failure send nothing more, and the turn goes on."""
        while True:
            event = await self._events.get()
            try:
                if self._failed is None:
                    for update in self._updates.of(event):
                        await self._client.session_update(self._session_id, update)
                    if self._buffers and isinstance(event, ToolEnd):
                        await self._show_edits(self._buffers, event)
            except Exception as error:  # noqa: BLE001 (the editor's side: `sent` raises it)
                self._failed = error
            finally:
                self._events.task_done()

    async def _show_edits(self, buffers: Buffers, event: ToolEnd) -> None:
        for path in await buffers.update(_result(event)):
            words = f"You changed {path} while it was edited: the edit is in the file, your text in the editor.\n"
            await self._client.session_update(self._session_id, acp.update_agent_thought_text(words))

    async def sent(self) -> None:
        """Wait until all events are sent. Raises what sending failed with."""
        await self._events.join()
        if self._failed:
            raise self._failed


class Updates:
    """Makes updates of the events of one turn, or of a session's earlier `entries`.

    It remembers what the calls that still run have shown, as an update of a call replaces what the call showed before.
    """

    def __init__(self, agent: AgentHandle, entries: Sequence[AnyEntry]) -> None:
        self._agent = agent
        costs = [entry.usage.cost_usd for entry in entries if isinstance(entry, EndEntry)]
        known = [cost for cost in costs if cost is not None]
        self._spent = sum(known) if known else None  # US dollars
        self._announced: set[str] = set()
        self._printed: dict[str, str] = {}
        self._in_terminal: dict[str, Sequence[ToolCallContentVariant]] = {}

    def of(self, event: RunEvent) -> Iterator[Update]:
        """The updates that show an event; none for events that editors don't show."""
        match event:
            case LlmStream(event=TextDelta(delta=delta)):
                yield acp.update_agent_message_text(delta)
            case LlmStream(event=ThinkingDelta(delta=delta)):
                yield acp.update_agent_thought_text(delta)
            case LlmEnd(message=AssistantMessage(usage=usage)):
                # How full the context is, and what the session has cost, where that is known
                if usage.cost_usd is not None:
                    self._spent = (self._spent or 0.0) + usage.cost_usd
                if usage.context:
                    cost = None if self._spent is None else schema.Cost(amount=self._spent, currency="USD")
                    size = self._agent.record.model.limits().window
                    yield schema.UsageUpdate(session_update="usage_update", used=usage.context, size=size, cost=cost)
            case ToolStart(tool_name=name, tool_call_id=call_id, args=args):
                yield self.started(ToolCall(call_id, name, args))
            case ToolUpdate(tool_call_id=call_id, text=text):
                if call_id in self._in_terminal:  # which shows it
                    return
                printed = self._printed[call_id] = (self._printed.get(call_id, "") + text)[-MAX_OUTPUT_CHARS:]
                yield acp.update_tool_call(call_id, content=[_block(printed)])
            case ToolEnd():
                yield from self._ended(event)
            case Withdrawn():
                yield acp.update_agent_message_text("\n\n(The answer above was withdrawn.)\n\n")
            case Retry(profile_id=profile):
                name = event.model if profile == "default" else f"{event.model} ({profile})"
                yield acp.update_agent_thought_text(f"{name}: {event.words}.\n")
            case Compacted(old_count=old, new_count=new):
                yield acp.update_agent_thought_text(f"Context made smaller: {old} → {new} messages.\n")
            case Notice(text=text, level="warning" | "error"):
                yield acp.update_agent_thought_text(f"{text}\n")

    def announced(self, request: Ask) -> schema.ToolCallStart:
        """A call that waits for permission, with what it would change and the question."""
        self._announced.add(request.call_id)
        call = ToolCall(request.call_id, request.tool_name, request.args)
        question = acp.tool_content(acp.text_block(request.question))
        proposed: list[ToolCallContentVariant] = []
        match request.args:
            case {"path": str(path), "old": str(old), "new": str(new)}:
                proposed.append(acp.tool_diff_content(str(self._agent.workspace / path), new, old))
            case {"path": str(path), "content": str(new)}:
                proposed.append(acp.tool_diff_content(str(self._agent.workspace / path), new))
            case args if shown := request.diff or args.get("patch"):
                proposed.append(_block(str(shown)))
        return self._call(call, "pending", [*proposed, question])

    def started(self, call: ToolCall) -> schema.ToolCallStart | schema.ToolCallProgress:
        """A call that begins to run."""
        if call.id in self._announced:
            return acp.update_tool_call(call.id, status="in_progress")
        return self._call(call)

    def in_terminal(self, call_id: str, terminal_id: str, found: str) -> schema.ToolCallProgress:
        """A call whose command runs in a terminal, with earlier notes, and the findings of checks after it."""
        notes = [_block(text) for text in (self._printed.get(call_id, ""), found) if text]
        content = self._in_terminal[call_id] = [*notes, tool_terminal_ref(terminal_id)]
        return acp.update_tool_call(call_id, content=content)

    def leave_terminal(self, call_id: str) -> None:
        """The command of this call runs without a terminal after all."""
        self._in_terminal.pop(call_id, None)

    def _call(
        self,
        call: ToolCall,
        status: schema.ToolCallStatus = "in_progress",
        content: Sequence[ToolCallContentVariant] | None = None,
    ) -> schema.ToolCallStart:
        workspace = self._agent.workspace
        target = call.args.get("path", call.args.get("target"))
        is_path = isinstance(target, str) and target
        about = next((value for value in call.args.values() if isinstance(value, str)), "")
        title = " ".join(f"{call.name} {about}".split())
        tool = self._agent.record.tools.get(call.name)
        by_trait = (kind for trait, kind in _KINDS_BY_TRAIT.items() if tool and trait in tool.traits)
        return acp.start_tool_call(
            call.id,
            title if len(title) <= MAX_TITLE_CHARS else f"{title[: MAX_TITLE_CHARS - 1]}…",
            kind=_KINDS.get(call.name) or next(by_trait, "other"),
            status=status,
            content=content,
            locations=[schema.ToolCallLocation(path=str(workspace / file_of(target, workspace)))] if is_path else None,
            raw_input=call.args,
        )

    def _ended(self, event: ToolEnd) -> Iterator[Update]:
        self._announced.discard(event.tool_call_id)
        self._printed.pop(event.tool_call_id, None)
        content: list[ToolCallContentVariant] = [
            acp.tool_diff_content(str(self._agent.workspace / edit["path"]), new, old)
            for edit in _result(event).edits
            for old, new in _hunks(edit["diff"])
        ]
        text = event.for_user or event.text
        if terminal := self._in_terminal.pop(event.tool_call_id, ()):
            content += terminal
            text = text.rpartition("\n")[2] if event.is_error else ""  # the terminal shows what comes before
        content += [_block(text)] if text.strip() else []
        details = msgspec.to_builtins(event.details, enc_hook=repr, str_keys=True)
        yield acp.update_tool_call(
            event.tool_call_id,
            status="failed" if event.is_error else "completed",
            content=content,
            raw_output={"output": event.text, **(details if isinstance(details, dict) else {})},
        )
        if isinstance(event.details, dict) and isinstance(tasks := event.details.get("tasks"), list):
            yield acp.update_plan([*_plan(tasks)])


def _result(event: ToolEnd) -> ToolResult:
    return ToolResult(event.tool_call_id, event.tool_name, [], details=event.details)


def _block(text: str) -> ToolCallContentVariant:
    """A tool's text as a code block: editors render what they are sent as Markdown."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
    return acp.tool_content(acp.text_block(f"{fence}\n{text.rstrip()}\n{fence}"))


def _hunks(diff: str) -> Iterator[tuple[str | None, str]]:
    """The old and the new text of each hunk of a unified diff; a new file has no old one (None)."""
    old, new, fresh = list[str](), list[str](), False
    for line in [*diff.split("\n"), "@@"]:
        if line.startswith("@@"):
            if old or new:
                yield None if fresh else "\n".join(old), "\n".join(new)
            old, new, fresh = list[str](), list[str](), line.startswith("@@ -0,0 ")
        elif line[:1] in {" ", "-", "+"}:
            (old if line[0] != "+" else new).append(line[1:])
            if line[0] == " ":
                new.append(line[1:])


def _plan(tasks: list[Any]) -> Iterator[Any]:
    for task in tasks:
        if isinstance(task, dict) and task.get("state") != "dropped":
            yield acp.plan_entry(
                str(task.get("goal", "")), status=_STATES.get(str(task.get("state", "todo")), "completed")
            )
            yield from _plan(task.get("subtasks") or [])
