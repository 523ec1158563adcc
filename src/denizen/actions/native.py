"""The `native` action format: tools as schemas, calls as the provider's own structure."""

import json
from collections.abc import Sequence

import msgspec

from denizen.actions.recovery import RECOVERED, may_hold_calls, recover_calls
from denizen.messages import AssistantMessage, Message, Text, Thinking, ToolCall, ToolResult, UserMessage, UserPart
from denizen.ports import NOTHING_SEEN, Intent, ModelRequest, SeenText, StreamFilter, Tool, Toolset


class Native:
    """The provider turns the model's calls into structure; what a server leaves of them in the text isn't shown."""

    name = "native"
    lists_tools = False

    def extra_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """None."""
        return ()

    def prepare(self, request: ModelRequest, tools: Toolset) -> ModelRequest:
        """The request with the tools' schemas."""
        return msgspec.structs.replace(request, tools=tools.schemas)

    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        """The calls as they came, and the text; calls that the server left in the text are found there."""
        thoughts = [part.text for part in message.content if type(part) is Thinking]
        calls, text = message.tool_calls, message.text
        if calls or not len(tools) or not may_hold_calls(text, (tool.name for tool in tools)):
            for at, call in enumerate(calls):  # where a server left special tokens: `name<|channel|>commentary`
                name, token, _ = call.name.partition("<|")
                if token and name in tools:
                    calls[at] = msgspec.structs.replace(call, name=name)
            calls = [*map(tools.meant_by, calls)]
            return Intent(calls, text, "\n".join(thoughts))
        found = recover_calls(text, tools)
        calls = [
            tools.meant_by(msgspec.structs.replace(call, id=f"{call.id}-{message.id or message.usage.context}"))
            for call in found.calls
        ]
        return Intent(
            calls,
            found.text,
            "\n".join([*thoughts, *([found.thinking] if found.thinking else [])]),
            problems=tuple(f"Not run: {why}." for why in found.broken) if calls else (),
            quoted=frozenset(
                call.id
                for call, words in zip(calls, found.wordings, strict=True)
                if is_quotation(call, words, tools, seen)
            ),
        )

    def stream_filter(self, tools: Toolset) -> StreamFilter | None:
        """Holds back calls that a server leaves in the text; without tools, nothing."""
        from denizen.actions.recovery.streaming import HoldCalls, openings_of

        return HoldCalls(openings_of(tuple(tool.name for tool in tools))) if len(tools) else None

    def report(self, results: Sequence[ToolResult]) -> Sequence[Message]:
        """The results as they are; as words where their calls were words, too: their provider knows of no call."""
        if not results or not results[0].call_id.startswith(RECOVERED):
            return results
        parts: list[UserPart] = []
        for result in results:
            text = "".join(part.text for part in result.content if isinstance(part, Text))
            failed = " (error)" if result.is_error else ""
            parts.append(Text(f"Result of {result.name}{failed}:\n{text}\n"))
            parts += [part for part in result.content if not isinstance(part, Text)]
        return [UserMessage(parts)]

    def show(self, call: ToolCall, tools: Toolset) -> str:
        """The tool's name with its arguments in brackets."""
        args = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.args.items())
        return f"{call.name}({args})"


def is_quotation(call: ToolCall, wording: str, tools: Toolset, seen: SeenText) -> bool:
    """Whether others wrote the call before, in the same words or in another syntax."""
    tool = tools.get(call.name)
    return seen.quotes(wording) or (tool is not None and seen.quotes_call({tool.name, *tool.shell_names}, call.args))
