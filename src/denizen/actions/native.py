"""The `native` action format: tools as schemas, calls as the provider's own structure."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import msgspec

from denizen.actions.recovery import RECOVERED, may_hold_calls, recover_calls
from denizen.messages import AssistantMessage, Message, Text, Thinking, ToolCall, ToolResult, UserMessage, UserPart
from denizen.ports import NOTHING_SEEN, Intent, ModelRequest, SeenText, StreamFilter, Tool, Toolset

if TYPE_CHECKING:
    from denizen.actions.recovery.streaming import Openings


class Native:
    """The provider turns the model's calls into structure; what a server leaves of them in the text isn't shown."""

    name = "native"
    lists_tools = False

    def __init__(self) -> None:
        self._openings: WeakKeyDictionary[Toolset, Openings] = WeakKeyDictionary()

    def extra_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """None."""
        return ()

    def prepare(self, request: ModelRequest, tools: Toolset) -> ModelRequest:
        """The request with the tools' schemas."""
        return msgspec.structs.replace(request, tools=tools.schemas)

    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        """The calls as they came, and the text beside them; calls that the server left in the text are found there."""
        calls, text, quoted, problems = message.tool_calls, message.text, frozenset[str](), tuple[str, ...]()
        thoughts = [part.text for part in message.content if type(part) is Thinking]
        if calls:
            calls = [_with_clean_name(call, tools) if "<|" in call.name else call for call in calls]
        elif len(tools) and may_hold_calls(text, (tool.name for tool in tools)):
            found = recover_calls(text, tools)
            calls, text = [_with_own_id(call, message) for call in found.calls], found.text
            quoted = frozenset(call.id for call, words in zip(calls, found.wordings, strict=True) if seen.quotes(words))
            thoughts += [found.thinking] if found.thinking else []
            problems = tuple(f"Not run: {why}." for why in found.broken) if calls else ()
        return Intent(calls, text, "\n".join(thoughts), problems=problems, quoted=quoted)

    def stream_filter(self, tools: Toolset) -> StreamFilter | None:
        """Holds back calls that a server leaves in the text; without tools there are none."""
        from denizen.actions.recovery.streaming import HoldCalls, Openings

        if not len(tools):
            return None
        if tools not in self._openings:
            self._openings[tools] = Openings(tool.name for tool in tools)
        return HoldCalls(self._openings[tools])

    def report(self, results: Sequence[ToolResult]) -> Sequence[Message]:
        """The results as they are; as words where their calls were, too: their provider knows of no call."""
        return [_told(results)] if results and results[0].call_id.startswith(RECOVERED) else results

    def show(self, call: ToolCall, tools: Toolset) -> str:
        """The tool's name with its arguments in brackets."""
        args = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.args.items())
        return f"{call.name}({args})"


def _with_clean_name(call: ToolCall, tools: Toolset) -> ToolCall:
    """The call under its tool's name, where a server left special tokens behind it (`name<|channel|>commentary`)."""
    name = call.name.partition("<|")[0]
    return msgspec.structs.replace(call, name=name) if name in tools else call


def _with_own_id(call: ToolCall, message: AssistantMessage) -> ToolCall:
    """The call under an id that it doesn't share with the same words later on, when the context has grown."""
    return msgspec.structs.replace(call, id=f"{call.id}-{message.usage.context}")


def _told(results: Sequence[ToolResult]) -> UserMessage:
    parts: list[UserPart] = []
    for result in results:
        words = [part for part in result.content if isinstance(part, Text)]
        others = [part for part in result.content if not isinstance(part, Text)]
        failed = " (error)" if result.is_error else ""
        parts += [Text(f"Result of {result.name}{failed}:\n{''.join(part.text for part in words)}\n"), *others]
    return UserMessage(parts)
