"""Reading a session's replies in the action format that they were written in."""

from collections.abc import Mapping, Sequence

import msgspec

from denizen.messages import AssistantMessage, Message, ToolCall, ToolResult
from denizen.ports import NOTHING_SEEN, ActionFormat, Intent, SeenText, Toolset


class AsWritten:
    """An action format for contexts: `other` is the one of the replies that follow, where it isn't the agent's own.

    Of a reply in another format that ends a turn the answer counts, and not the command that gave it.
    """

    def __init__(self, actions: ActionFormat, others: Mapping[str, ActionFormat]) -> None:
        self._actions = actions
        self._others = others
        self.other: ActionFormat | None = None
        self.name = actions.name
        self.lists_tools = actions.lists_tools
        self.extra_tools = actions.extra_tools
        self.prepare = actions.prepare
        self.stream_filter = actions.stream_filter

    def follow(self, name: str) -> None:
        """From here on replies are in the format of that name."""
        self.other = self._others.get(name)

    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        """What the reply asked for."""
        if self.other is None:
            return self._actions.read(message, tools, seen)
        intent = self.other.read(message, tools, seen)
        return msgspec.structs.replace(intent, kept_text=intent.reply) if intent.ends_turn else intent

    def report(self, results: Sequence[ToolResult]) -> Sequence[Message]:
        """The results as they were told."""
        return (self.other or self._actions).report(results)

    def show(self, call: ToolCall, tools: Toolset) -> str:
        """The call as it was written."""
        return (self.other or self._actions).show(call, tools)
