"""How what was said reaches the model, whatever the policy."""

import functools
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone

import msgspec

from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult, UserMessage, UserPart
from denizen.not_run import MISSING

BEGINNING_LOST = "[What was said before this is missing from the transcript.]"
"""What stands before an answer that comes first: providers take no conversation that the model begins."""


def missing(call: ToolCall) -> ToolResult:
    """What stands for the result of `call`."""
    return ToolResult(call.id, call.name, [Text(MISSING)], is_error=True)


def as_heard(message: AssistantMessage, text: str) -> AssistantMessage:
    """The answer with the part of its text that counts."""
    others = [part for part in message.content if not isinstance(part, Text)]
    return msgspec.structs.replace(message, content=[*others, Text(text)])


def stamped(message: UserMessage) -> UserMessage:
    """The message with the time it was said at, which the prompt can't hold without changing at each call."""
    if message.at is None:
        return message
    offset = message.at.utcoffset()
    zone = "" if offset is None else str(timezone(offset))  # a zone's own name is not in the transcript
    stamp = _stamp(message.at.replace(second=0, microsecond=0, tzinfo=None), zone)
    return msgspec.structs.replace(message, content=[*message.content, stamp])


@functools.lru_cache(8)
def _stamp(minute: datetime, zone: str) -> Text:
    return Text(f"<time>{minute:%A %Y-%m-%d %H:%M} {zone}</time>")


def apart(pieces: Iterable[Sequence[UserPart]]) -> list[UserPart]:
    """The pieces as the content of one message, an empty line between them.

    Each stays a part of its own, the same whatever comes behind it: a provider's cache knows it again.
    """
    parts: list[UserPart] = []
    for piece in pieces:
        match piece:
            case [Text(text), *rest] if parts:
                parts += [Text(f"\n\n{text}"), *rest]
            case _:
                parts += piece
    return parts


def headed(header: str, parts: Sequence[UserPart]) -> list[UserPart]:
    """The parts with a line above them."""
    match parts:
        case [Text(text), *rest]:
            return [Text(f"{header}\n{text}"), *rest]
        case _:
            return [Text(header), *parts]
