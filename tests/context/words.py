"""An action format of plain words, for what a context policy must hold whatever the format."""

from collections.abc import Sequence

from denizen.messages import AssistantMessage, Message, Text, ToolCall, ToolResult, UserMessage
from denizen.ports import UNSEEN, Intent, ModelRequest, SeenText, Spoken, Toolset


class InText:
    """Commands are lines as `c1! read 1`, with the call's id. What follows `OUTPUT:` doesn't count; `DONE:` ends."""

    def prepare(self, request: ModelRequest, tools: Toolset) -> ModelRequest:
        return request

    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = UNSEEN) -> Intent:
        text, invented, _ = message.text.partition("OUTPUT:")
        _, done, answer = text.partition("DONE: ")
        problems = ["what you wrote made no sense"] if "PROBLEM" in text else []
        calls = [call(line) for line in text.splitlines() if "! " in line]
        return Intent(calls, answer or text, ends=bool(done), problems=problems, heard=text if invented else None)

    def spoken(self, tools: Toolset) -> Spoken | None:
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
