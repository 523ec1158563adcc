"""Results of tools made shorter where they don't fit the window."""

from collections.abc import Sequence
from itertools import chain
from typing import TypeVar

import msgspec

from denizen.messages import AssistantMessage, Message, Text, ToolResult, UserMessage, UserPart

_M = TypeVar("_M", bound=UserMessage | AssistantMessage | ToolResult)

TRUNCATE_OVER = 20_000
"""Characters of a tool result that level 2 leaves (seed 003, "Level 2")."""

LEAST_RESULT = 500
"""Characters of a tool result that level 2 leaves however small the window is."""

_MARK = "\n[truncated "


def shortened(message: _M, told: bool, limit: int) -> _M:
    """The message with `limit` characters of the result that it is, or of each that is `told` in it; else the same."""
    match message:
        case ToolResult(content=[*content, Text(text)]) if text.startswith(_MARK):
            short = _cut(content, limit, missing=int(text.removeprefix(_MARK).partition(" ")[0]))
            content = message.content
        case ToolResult(content=content):
            short = _cut(content, limit)
        case UserMessage(content=content) if told:
            short = [*chain.from_iterable(_cut([part], limit) for part in content)]
        case _:
            return message
    return message if short == content else msgspec.structs.replace(message, content=short)


def result_lengths(message: Message, told: bool) -> list[int]:
    """Characters of the result that it is, or of each that is `told` in it."""
    lengths = [len(part.text) for part in message.content if isinstance(part, Text)]
    if isinstance(message, ToolResult):
        return [sum(lengths)]
    return lengths if told and isinstance(message, UserMessage) else []


def fair_share(lengths: Sequence[int], room: int) -> int:
    """The characters that each may have at most so that all of them together have `room`."""
    for left, length in zip(range(len(lengths), 0, -1), sorted(lengths), strict=True):
        if length * left > room:
            return max(room // left, LEAST_RESULT)
        room -= length
    return TRUNCATE_OVER


def _cut(parts: Sequence[UserPart], limit: int, missing: int = 0) -> list[UserPart]:
    """The parts with `limit` characters of their words, and how many are missing with those that were."""
    kept: list[UserPart] = []
    room = limit
    for part in parts:
        if isinstance(part, Text):
            kept += [Text(part.text[: max(room, 0)])] if room > 0 else []
            room -= len(part.text)
        else:
            kept.append(part)
    missing -= min(room, 0)
    return [*kept, Text(f"{_MARK}{missing} chars]")] if missing else kept
