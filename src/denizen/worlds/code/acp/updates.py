"""What happens in a turn, as the protocol shows it to an editor."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import acp
import msgspec
from acp.helpers import ToolCallContentVariant
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    Cost,
    PlanEntryStatus,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolCallStatus,
    ToolKind,
    UsageUpdate,
)

from denizen.entries import AnyEntry, EndEntry
from denizen.events import (
    Compacted,
    LlmEnd,
    LlmStream,
    Notice,
    Retry,
    RunEvent,
    TextDelta,
    ThinkingDelta,
    ToolEnd,
    ToolStart,
    ToolUpdate,
    Withdrawn,
)
from denizen.messages import ToolCall, ToolResult, Usage
from denizen.ports import Ask, Traits
from denizen.tools.risk import file_of
from denizen.worlds.world import AgentHandle

Update = AgentMessageChunk | AgentThoughtChunk | AgentPlanUpdate | ToolCallStart | ToolCallProgress | UsageUpdate

MOST_PRINTED = 4000
"""Characters shown of what a running call printed: the last ones."""

LONGEST_TITLE = 80
"""Characters."""

_KINDS: Mapping[str, ToolKind] = {
    "grep": "search",
    "find": "search",
    "analyze": "search",
    "recall": "search",
    "web_fetch": "fetch",
    "task": "think",
    "note": "think",
    "keep": "think",
}
_STATES: Mapping[str, PlanEntryStatus] = {"todo": "pending", "doing": "in_progress"}


class Updates:
    """Makes updates of the events of one turn, or of a session's earlier `entries`.

    It remembers what the calls that still run have shown, as an update of a call replaces what the call showed before.
    """

    def __init__(self, agent: AgentHandle, entries: Sequence[AnyEntry]) -> None:
        self._agent = agent
        self._spent = _spent(entries)
        self._announced: set[str] = set()
        self._printed: dict[str, str] = {}

    def of(self, event: RunEvent) -> Iterator[Update]:
        """The updates that tell of an event; none for what editors don't show."""
        match event:
            case LlmStream(event=TextDelta(delta=delta)):
                yield acp.update_agent_message_text(delta)
            case LlmStream(event=ThinkingDelta(delta=delta)):
                yield acp.update_agent_thought_text(delta)
            case LlmEnd(message=message):
                yield from self._used(message.usage)
            case ToolStart(tool_name=name, tool_call_id=call_id, args=args):
                yield self.started(ToolCall(call_id, name, args))
            case ToolUpdate(tool_call_id=call_id, text=text):
                printed = self._printed[call_id] = (self._printed.get(call_id, "") + text)[-MOST_PRINTED:]
                yield acp.update_tool_call(call_id, content=[_block(printed)])
            case ToolEnd():
                yield from self._ended(event)
            case _:
                yield from _aside(event)

    def announced(self, request: Ask) -> ToolCallStart:
        """A call that waits for permission, with what it would change and the question."""
        self._announced.add(request.call_id)
        call = ToolCall(request.call_id, request.tool_name, request.args)
        question = acp.tool_content(acp.text_block(request.question))
        return self._call(call, "pending", [*self._proposed(request), question])

    def started(self, call: ToolCall) -> ToolCallStart | ToolCallProgress:
        """A call that begins to run."""
        if call.id in self._announced:
            return acp.update_tool_call(call.id, status="in_progress")
        return self._call(call)

    def _call(
        self,
        call: ToolCall,
        status: ToolCallStatus = "in_progress",
        content: Sequence[ToolCallContentVariant] | None = None,
    ) -> ToolCallStart:
        return acp.start_tool_call(
            call.id,
            _title(call),
            kind=self._kind(call.name),
            status=status,
            content=content,
            locations=self._places(call),
            raw_input=call.args,
        )

    def _proposed(self, request: Ask) -> Iterator[ToolCallContentVariant]:
        """What a call would do to files, as far as that is known."""
        match request.args:
            case {"path": str(path), "old": str(old), "new": str(new)}:
                yield acp.tool_diff_content(str(self._agent.workspace / path), new, old)
            case {"path": str(path), "content": str(new)}:
                yield acp.tool_diff_content(str(self._agent.workspace / path), new)
            case args if shown := request.diff or args.get("patch"):
                yield _block(str(shown))
            case _:
                pass

    def _places(self, call: ToolCall) -> list[ToolCallLocation] | None:
        workspace = self._agent.workspace
        target = call.args.get("path", call.args.get("target"))
        if not isinstance(target, str) or not target:
            return None
        return [ToolCallLocation(path=str(workspace / file_of(target, workspace)))]

    def _kind(self, name: str) -> ToolKind:
        tool = self._agent.record.tools.get(name)
        if name in _KINDS or tool is None:
            return _KINDS.get(name, "other")
        kinds: dict[Traits, ToolKind] = {Traits.EXECUTES: "execute", Traits.WRITES: "edit", Traits.READS: "read"}
        return next((kind for trait, kind in kinds.items() if trait in tool.traits), "other")

    def _ended(self, event: ToolEnd) -> Iterator[Update]:
        self._announced.discard(event.tool_call_id)
        self._printed.pop(event.tool_call_id, None)
        text = event.for_user or event.text
        content = [*self._diffs(event), *([_block(text)] if text.strip() else [])]
        details = msgspec.to_builtins(event.details, enc_hook=repr, str_keys=True)
        yield acp.update_tool_call(
            event.tool_call_id,
            status="failed" if event.is_error else "completed",
            content=content,
            raw_output={"output": event.text, **(details if isinstance(details, dict) else {})},
        )
        if isinstance(event.details, dict) and isinstance(tasks := event.details.get("tasks"), list):
            yield acp.update_plan([*_plan(tasks)])

    def _diffs(self, event: ToolEnd) -> Iterator[ToolCallContentVariant]:
        """What a tool did to files: each place that changed, before and after."""
        for edit in ToolResult(event.tool_call_id, event.tool_name, [], details=event.details).edits:
            for old, new in _hunks(edit["diff"]):
                yield acp.tool_diff_content(str(self._agent.workspace / edit["path"]), new, old)

    def _used(self, usage: Usage) -> Iterator[UsageUpdate]:
        """How full the context is after a model call, and what the session has cost, where that is known."""
        if usage.cost_usd is not None:
            self._spent = (self._spent or 0.0) + usage.cost_usd
        if usage.context:
            cost = None if self._spent is None else Cost(amount=self._spent, currency="USD")
            size = self._agent.record.model.limits().window
            yield UsageUpdate(session_update="usage_update", used=usage.context, size=size, cost=cost)


def _aside(event: RunEvent) -> Iterator[Update]:
    """What is said about the turn, and isn't the model's answer."""
    match event:
        case Withdrawn():
            yield acp.update_agent_message_text("\n\n(What was shown of this answer doesn't count.)\n\n")
        case Retry():
            yield acp.update_agent_thought_text(f"{_again(event)}\n")
        case Compacted(old_count=old, new_count=new):
            yield acp.update_agent_thought_text(f"Context made smaller: {old} → {new} messages.\n")
        case Notice(text=text, level="warning" | "error"):
            yield acp.update_agent_thought_text(f"{text}\n")
        case _:
            pass


def _again(event: Retry) -> str:
    """Why a model is asked again, which, and when."""
    profile = "" if event.profile_id == "default" else f" ({event.profile_id})"
    return f"{event.model}{profile}: {event.words}."


def _spent(entries: Sequence[AnyEntry]) -> float | None:
    """US dollars of a session's earlier turns; None where no price is known."""
    costs = [entry.usage.cost_usd for entry in entries if isinstance(entry, EndEntry)]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def _title(call: ToolCall) -> str:
    """The tool and its first argument that is a text, in a short line."""
    about = next((value for value in call.args.values() if isinstance(value, str)), "")
    title = " ".join(f"{call.name} {about}".split())
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"


def _block(text: str) -> ToolCallContentVariant:
    """A tool's text as a code block: editors render what they are sent as Markdown."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 0)
    return acp.tool_content(acp.text_block(f"{fence}\n{text.rstrip()}\n{fence}"))


def _hunks(diff: str) -> Iterator[tuple[str | None, str]]:
    """The texts on both sides of each part of a unified diff; None before it in a new file."""
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
