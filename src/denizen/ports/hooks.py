"""Hooks: commands of the user's that hear what a turn does, and may refuse it."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import msgspec

HookEvent = Literal["turn_start", "turn_end", "before_tool", "after_tool", "notice"]
"""When hooks are called. Those of `turn_start` and `before_tool` may refuse."""


class HookAnswer(msgspec.Struct, frozen=True):
    """The reason of a refusal (empty: none), and the hooks' problems, for the user."""

    refusal: str = ""
    problems: list[str] = []


class Hooks(Protocol):
    """Calls the user's commands."""

    async def call(self, event: HookEvent, data: Mapping[str, Any], tool: str = "") -> HookAnswer:
        """Call those for the event, and for the tool if it is about one; `data` are JSON values. Raises nothing."""
