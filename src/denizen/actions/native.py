"""The `native` action format: tools as schemas, calls as the provider's own structure."""

import json
from collections.abc import Sequence

import msgspec

from denizen.messages import AssistantMessage, Message, Thinking, ToolCall, ToolResult
from denizen.ports import Intent, ModelRequest, Toolset


class Native:
    """The provider turns the model's calls into structure."""

    def prepare(self, request: ModelRequest, tools: Toolset) -> ModelRequest:
        """The request with the tools' schemas."""
        return msgspec.structs.replace(request, tools=tools.schemas)

    def read(self, message: AssistantMessage, tools: Toolset) -> Intent:
        """The calls as they came, and the text beside them."""
        thoughts = "\n".join([part.text for part in message.content if type(part) is Thinking])
        return Intent(message.tool_calls, message.text, thoughts)

    def report(self, results: Sequence[ToolResult]) -> Sequence[Message]:
        """The results as they are."""
        return results

    def show(self, call: ToolCall, tools: Toolset) -> str:
        """The tool's name with its arguments in brackets."""
        args = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.args.items())
        return f"{call.name}({args})"
