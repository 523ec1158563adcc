"""An action format of plain words, for what a context policy must hold whatever the format."""

from collections.abc import Sequence

from denizen.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage
from denizen.ports import NOTHING_SEEN, Intent, ModelRequest, SeenText, StreamFilter, Tool, Toolset


class InText:
    """Commands are lines as `c1! read 1`, with the call's id. What follows `OUTPUT:` doesn't count; `DONE:` ends."""

    name = "in-text"
    lists_tools = False

    def extra_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        return ()

    def prepare(self, request: ModelRequest, tools: Toolset) -> ModelRequest:
        return request

    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        text, invented, _ = message.text.partition("OUTPUT:")
        _, done, answer = text.partition("DONE: ")
        problems = ["what you wrote made no sense"] if "PROBLEM" in text else []
        calls = [call(line) for line in text.splitlines() if "! " in line]
        return Intent(
            calls, answer or text, ends_turn=bool(done), problems=problems, kept_text=text if invented else None
        )

    def stream_filter(self, tools: Toolset) -> StreamFilter | None:
        return None

    def report(self, results: Sequence[ToolResult]) -> Sequence[Message]:
        return [UserMessage([Text(result.text)]) for result in results]

    def show(self, call: ToolCall, tools: Toolset) -> str:
        return " ".join([call.name, *map(str, call.args.values())])


def written(message: AssistantMessage) -> AssistantMessage:
    """A message whose calls are structure, as it would be in text."""
    lines = [f"{each.id}! {each.name} {' '.join(map(str, each.args.values()))}" for each in message.tool_calls]
    return AssistantMessage([Text("\n".join([*lines, message.text]))], stop_reason=message.stop_reason)


def call(line: str) -> ToolCall:
    id, _, words = line.partition("! ")
    name, *args = words.split()
    return ToolCall(id, name, dict(enumerate(args)))  # pyrefly: ignore - names would only be noise here
