"""The model behind the programs that the tests start: it plays a script, over real HTTP."""

from collections.abc import Callable
from typing import Any

import msgspec

from denizen.messages import AssistantMessage, Text, ToolCall, Usage
from denizen.testing import LoopbackOpenAI, Step

USAGE = Usage(120, 30)

Reply = str | AssistantMessage | Callable[[LoopbackOpenAI], None]


def call(name: str, text: str = "", **args: Any) -> AssistantMessage:
    """An answer that asks for a tool."""
    words = [Text(text)] if text else []
    return AssistantMessage([*words, ToolCall("", name, args)], usage=USAGE, stop_reason="tool_calls")


def refuses(status: int, words: str) -> Reply:
    """No answer, but a status and a reason."""
    return lambda server: server.fail(status, words)


def dies(text: str) -> Reply:
    """An answer that breaks off after these words."""
    return lambda server: server.send(*_begun(server, text), Step.HANG_UP)


def stalls(text: str) -> Reply:
    """An answer that never goes on after these words."""
    return lambda server: server.send(*_begun(server, text), Step.STALL)


def lists(*names: str) -> Reply:
    """The models that the server has, for who asks for them."""
    data = {"data": [{"id": name} for name in names]}
    return lambda server: server.send(msgspec.json.encode(data), content_type="application/json")


class Model:
    """Plays replies in order, and keeps what it was asked."""

    def __init__(self, server: LoopbackOpenAI) -> None:
        self.server = server
        self._calls = 0

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The requests, parsed."""
        return [request.json for request in self.server.requests]

    def plays(self, *replies: Reply) -> None:
        """Add to the script. Tool calls get the ids call-1, call-2, …"""
        for reply in replies:
            if callable(reply):
                reply(self.server)
            else:
                self.server.say(self._numbered(reply))

    def told(self, number: int = -1) -> str:
        """The words of a request's last message."""
        content = self.requests[number]["messages"][-1]["content"]
        return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)

    def _numbered(self, reply: str | AssistantMessage) -> AssistantMessage:
        if isinstance(reply, str):
            return AssistantMessage([Text(reply)], usage=USAGE)
        self._calls += len(reply.tool_calls)
        parts = [
            ToolCall(f"call-{self._calls}", part.name, part.args) if isinstance(part, ToolCall) else part
            for part in reply.content
        ]
        return AssistantMessage(parts, usage=reply.usage, stop_reason=reply.stop_reason)


def _begun(server: LoopbackOpenAI, text: str) -> list[bytes]:
    return [event for event in server.wire.streamed(AssistantMessage([Text(text)])) if b'"content":' in event]
