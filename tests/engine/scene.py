"""What the tests of the engine share: a host that records, and short ways to write a model's answers."""

import asyncio
import functools
from collections.abc import Callable, Sequence
from typing import Any

import denizen
from denizen import Agent
from denizen.entries import AnyEntry
from denizen.events import RunEvent, RunResult
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult, Usage, UserMessage
from denizen.ports import Answer, Ask, Control, ModelRequest, Parked
from denizen.testing import ScriptedModel

DEFAULT = "agent:main:channel:cli:account:default:peer:direct:default"
"""The key of the session that is called `default`."""


class Host:
    """Records events; answers what `answer` says; passes on the controls of `say`."""

    def __init__(self) -> None:
        self.events: list[RunEvent] = []
        self.asked: list[Ask] = []
        self._waiting: list[Control] = []
        self._arrived = asyncio.Event()
        self.answer: Callable[[Ask], Answer | Parked] = lambda ask: Parked()

    def emit(self, event: RunEvent) -> None:
        self.events.append(event)

    def controls(self) -> Sequence[Control]:
        heard, self._waiting = self._waiting, []
        self._arrived.clear()
        return heard

    async def changed(self) -> None:
        await self._arrived.wait()

    def say(self, *controls: Control) -> None:
        """Let controls arrive."""
        self._waiting += controls
        self._arrived.set()

    async def ask(self, request: Ask) -> Answer | Parked:
        self.asked.append(request)
        return self.answer(request)

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


run_agent = functools.partial(denizen.run_agent, session_key="default")
"""A turn of the session `default`, unless another is named."""


def say(text: str, **usage: Any) -> AssistantMessage:
    """A final answer."""
    usage.setdefault("cost_usd", 0.0)
    return AssistantMessage([Text(text)], "scripted", Usage(**usage))


def call(*calls: tuple[str, dict[str, Any]], text: str = "", **usage: Any) -> AssistantMessage:
    """An answer that asks for tools; calls get the ids c1, c2, …"""
    parts = [ToolCall(f"c{number}", name, args) for number, (name, args) in enumerate(calls, 1)]
    usage.setdefault("cost_usd", 0.0)
    return AssistantMessage([*([Text(text)] if text else []), *parts], "scripted", Usage(**usage), "tool_calls")


def user(text: str) -> UserMessage:
    """A message of the user."""
    return UserMessage([Text(text)])


def requests_of(agent: Agent) -> list[ModelRequest]:
    """What the agent's scripted model was asked."""
    assert isinstance(agent.model, ScriptedModel)
    return agent.model.requests


def results(result: RunResult) -> list[ToolResult]:
    """The tool results of a turn."""
    return [message for message in result.messages if isinstance(message, ToolResult)]


def kinds(entries: Sequence[AnyEntry]) -> list[str]:
    """The types of entries, by the names that the file gives them."""
    return [str(entry.__struct_config__.tag) for entry in entries]
