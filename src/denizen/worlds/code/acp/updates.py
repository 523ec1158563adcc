"""What happens in a turn, as the protocol tells it to an editor."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import acp
from acp.helpers import SessionUpdate, ToolCallContentVariant
from acp.schema import PlanEntryStatus, ToolCallLocation, ToolKind

from denizen.events import (
    LlmStream,
    Notice,
    RunEvent,
    TextDelta,
    ThinkingDelta,
    ToolEnd,
    ToolStart,
    ToolUpdate,
    Withdrawn,
)
from denizen.messages import ToolCall
from denizen.ports import ActionFormat, Toolset, Traits

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
    """Makes updates of events; `workspace` is where the paths of tools lie."""

    def __init__(self, actions: ActionFormat, tools: Toolset, workspace: Path) -> None:
        self._actions = actions
        self._tools = tools
        self._workspace = workspace

    def of(self, event: RunEvent) -> Iterator[SessionUpdate]:
        """The updates that tell of an event; none for what editors don't show."""
        match event:
            case LlmStream(event=TextDelta(delta=delta)):
                yield acp.update_agent_message_text(delta)
            case LlmStream(event=ThinkingDelta(delta=delta)):
                yield acp.update_agent_thought_text(delta)
            case Withdrawn():
                yield acp.update_agent_message_text("\n\n(What was shown of this answer doesn't count.)\n\n")
            case ToolStart(tool_name=name, tool_call_id=call_id, args=args):
                yield self.call(ToolCall(call_id, name, args))
            case ToolUpdate(tool_call_id=call_id, text=text):
                yield acp.update_tool_call(call_id, content=[acp.tool_content(acp.text_block(text))])
            case ToolEnd():
                yield from self._ended(event)
            case Notice(text=text, level="warning" | "error"):
                yield acp.update_agent_thought_text(f"{text}\n")
            case _:
                pass

    def call(self, call: ToolCall) -> SessionUpdate:
        """A call that is about to run."""
        path = call.args.get("path", call.args.get("target"))
        places = [ToolCallLocation(path=str(self._workspace / path))] if isinstance(path, str) and path else None
        return acp.start_tool_call(
            call.id,
            self._actions.show(call, self._tools),
            kind=self._kind(call.name),
            status="in_progress",
            locations=places,
            raw_input=call.args,
        )

    def _kind(self, name: str) -> ToolKind:
        tool = self._tools.get(name)
        if name in _KINDS or tool is None:
            return _KINDS.get(name, "other")
        kinds: dict[Traits, ToolKind] = {Traits.EXECUTES: "execute", Traits.WRITES: "edit", Traits.READS: "read"}
        return next((kind for trait, kind in kinds.items() if trait in tool.traits), "other")

    def _ended(self, event: ToolEnd) -> Iterator[SessionUpdate]:
        content: list[ToolCallContentVariant] = [*self._diffs(event.details)]
        if not content and event.summary:
            content.append(acp.tool_content(acp.text_block(event.for_user or event.summary)))
        status = "failed" if event.is_error else "completed"
        yield acp.update_tool_call(event.tool_call_id, status=status, content=content)
        if isinstance(event.details, dict) and isinstance(tasks := event.details.get("tasks"), list):
            yield acp.update_plan([*_plan(tasks)])

    def _diffs(self, details: Any) -> Iterator[ToolCallContentVariant]:
        """What a tool did to files: each place that changed, before and after."""
        files = details.get("files", [details]) if isinstance(details, dict) else []
        for file in files if isinstance(files, list) else []:
            if isinstance(file, dict) and file.get("diff") and file.get("path"):
                for old, new in _hunks(str(file["diff"])):
                    yield acp.tool_diff_content(str(self._workspace / str(file["path"])), new, old)


def _hunks(diff: str) -> Iterator[tuple[str, str]]:
    """The texts on both sides of each part of a unified diff."""
    old, new = list[str](), list[str]()
    for line in [*diff.split("\n"), "@@"]:
        if line.startswith("@@"):
            if old or new:
                yield "\n".join(old), "\n".join(new)
            old, new = list[str](), list[str]()
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
