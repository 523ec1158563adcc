"""What the model sees of its last reply: the outputs of its calls, and what its edits have changed so far."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

import msgspec

from denizen.context.rendering import headed, joined, missing_result, result_lengths, shortened, with_text
from denizen.messages import AssistantMessage, Message, Text, ToolResult, UserMessage, UserPart
from denizen.plural import counted
from denizen.ports import ActionFormat, Toolset, Traits

COMMAND_CHARS = 200
"""Characters of a command that are shown above its output; the reply itself has the whole of it."""
MAX_FILES = 20
"""Changed files that are named."""


class ReplyOutputs:
    """One reply with the outputs of its calls: `[1] $ command`, and what it gave.

    They are numbered as the calls come in the reply, whatever order they ended in.
    """

    def __init__(self, reply: AssistantMessage, actions: ActionFormat, tools: Toolset) -> None:
        self._actions = actions
        self._tools = tools
        self._intent = actions.read(reply, tools)
        kept = self._intent.kept_text
        self._reply = reply if kept is None else with_text(reply, kept)
        self._native = {call.id for call in reply.tool_calls}
        self._calls = {call.id: call for call in self._intent.calls}
        self._results: dict[str, ToolResult] = {}
        self.traits = Traits.NONE  # of the results

    @property
    def answers(self) -> bool:
        """Whether the reply ends the turn, unless somebody says more."""
        return self._intent.ends_turn or not self._intent.calls

    @property
    def answer(self) -> str:
        """The text for the person."""
        return self._intent.reply

    @property
    def is_cut(self) -> bool:
        """Whether the length limit cut that text."""
        return self._reply.stop_reason == "length" and not self._intent.calls

    def take(self, result: ToolResult) -> bool:
        """Take in the result of one of its calls; False for any other, and for a second one."""
        if result.call_id not in self._calls or result.call_id in self._results:
            return False
        self._results[result.call_id] = result
        self.traits |= self._tools.traits_of(result)
        return True

    @property
    def lengths(self) -> list[int]:
        """Characters of each result."""
        return [*chain.from_iterable(result_lengths(result, reported=False) for result in self._results.values())]

    def shorten(self, limit: int) -> None:
        """Leave `limit` characters of each result."""
        self._results = {id_: shortened(result, False, limit) for id_, result in self._results.items()}

    def output(self, number: int) -> ToolResult | None:
        """The result of that number, its command above it; None where there is none."""
        calls = self._intent.calls
        result = self._results.get(calls[number - 1].id) if 1 <= number <= len(calls) else None
        return result and self._headed("[kept]", result)

    def messages(self, news: Sequence[Sequence[UserPart]]) -> list[Message]:
        """The reply, its outputs, what was wrong with it, and the news; nothing where nothing follows it."""
        outputs = [
            self._headed(f"[{number}]", self._results.get(call.id) or missing_result(call))
            for number, call in enumerate(self._intent.calls, 1)
        ]
        native = [result for result in outputs if result.call_id in self._native]
        texts = [result.content for result in outputs if result.call_id not in self._native]
        reported = joined([*texts, *([Text(problem)] for problem in self._intent.problems), *news])
        if not self._reply.content or not (native or reported):
            return []
        return [self._reply, *native, *([UserMessage(reported)] if reported else [])]

    def _headed(self, mark: str, result: ToolResult) -> ToolResult:
        command = " ".join(self._actions.show(self._calls[result.call_id], self._tools).split())
        shown = command if len(command) <= COMMAND_CHARS else f"{command[:COMMAND_CHARS]}…"
        failed = " (failed)" if result.is_error else ""
        return msgspec.structs.replace(result, content=headed(f"{mark} $ {shown}{failed}", result.content))


class ChangedFiles:
    """Adds up the edits that results report; a rollback takes it back to what it was at the checkpoint."""

    def __init__(self) -> None:
        self._files: dict[str, str | tuple[int, int]] = {}  # "new", "deleted", or the lines added and removed
        self._checkpoints: dict[str, dict[str, str | tuple[int, int]]] = {}

    def take(self, result: ToolResult) -> None:
        """Take in one more result."""
        for edit in result.edits:
            self._edit(edit)
        match result.details:
            case {"checkpoint": str(snapshot)}:
                self._checkpoints[snapshot] = {**self._files}
            case {"rollback": str(snapshot)}:
                self._files = {**self._checkpoints.get(snapshot, {})}
            case _:
                pass

    @property
    def line(self) -> str:
        """`changed: a.py (+3 −1), tests/test_a.py (new)`; empty where nothing was."""
        named = [
            f"{path} ({how if isinstance(how, str) else f'+{how[0]} −{how[1]}'})" for path, how in self._files.items()
        ]
        more = [f"and {counted(len(named) - MAX_FILES, 'file')} more"] if len(named) > MAX_FILES else []
        return f"changed: {', '.join([*named[:MAX_FILES], *more])}" if named else ""

    def _edit(self, edit: dict[str, Any]) -> None:
        path, did = edit["path"], edit.get("did", "created" if edit.get("created") else "updated")
        if did == "renamed":
            self._delete(edit["from"])
        before = self._files.get(path, (0, 0))
        if did == "deleted":
            self._delete(path)
        elif did in {"created", "renamed", "copied"}:
            self._files[path] = "new" if isinstance(before, tuple) else (edit["added"], edit["removed"])
        elif isinstance(before, tuple):
            self._files[path] = (before[0] + edit["added"], before[1] + edit["removed"])

    def _delete(self, path: str) -> None:
        if self._files.pop(path, "") != "new":
            self._files[path] = "deleted"
