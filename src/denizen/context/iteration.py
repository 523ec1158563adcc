"""One reply with the results of its calls, as the model sees them: `[1] $ command`, and what it gave."""

from collections.abc import Sequence
from itertools import chain

import msgspec

from denizen.context.said import apart, as_heard, headed, missing
from denizen.context.shorten import result_lengths, shortened
from denizen.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage, UserPart
from denizen.ports import ActionFormat, Toolset, Traits

COMMAND_CHARS = 200
"""Characters of a command that stand over its output; the reply itself has the whole of it."""


class Iteration:
    """The outputs are numbered as the calls come in the reply, whatever order they ended in."""

    def __init__(self, reply: AssistantMessage, actions: ActionFormat, tools: Toolset) -> None:
        self._actions = actions
        self._tools = tools
        self._intent = actions.read(reply, tools)
        heard = self._intent.kept_text
        self._reply = reply if heard is None else as_heard(reply, heard)
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
        return [*chain.from_iterable(result_lengths(result, told=False) for result in self._results.values())]

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
        outputs = [self._numbered(number, call) for number, call in enumerate(self._intent.calls, 1)]
        native = [result for result in outputs if result.call_id in self._native]
        texts = [result.content for result in outputs if result.call_id not in self._native]
        told = apart([*texts, *([Text(problem)] for problem in self._intent.problems), *news])
        if not self._reply.content or not (native or told):
            return []
        return [self._reply, *native, *([UserMessage(told)] if told else [])]

    def _numbered(self, number: int, call: ToolCall) -> ToolResult:
        return self._headed(f"[{number}]", self._results.get(call.id) or missing(call))

    def _headed(self, mark: str, result: ToolResult) -> ToolResult:
        command = " ".join(self._actions.show(self._calls[result.call_id], self._tools).split())
        shown = command if len(command) <= COMMAND_CHARS else f"{command[:COMMAND_CHARS]}…"
        failed = " (failed)" if result.is_error else ""
        return msgspec.structs.replace(result, content=headed(f"{mark} $ {shown}{failed}", result.content))
