"""How what was said reaches the model, whatever the policy: stamped, joined, under a header, or shortened."""

import functools
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from itertools import chain
from typing import TypeVar

import msgspec

from denizen.messages import (
    AssistantMessage,
    Document,
    Image,
    Message,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
    UserPart,
)
from denizen.text.documents import document_text
from denizen.text.estimate import BYTES_PER_TOKEN, estimate_document
from denizen.text.not_run import MISSING

BEGINNING_LOST = "[What was said before this is missing from the transcript.]"
"""Put before an answer that comes first: providers take no conversation that the model begins."""
REFUSED = Text("[Left out: the provider refused it.]")
"""Put in place of content that the model can't be asked with."""
TRUNCATE_OVER_CHARS = 20_000
"""Characters of a tool result that level 2 leaves (decisions, "Overflow")."""
MIN_RESULT_CHARS = 500
"""Characters of a tool result that level 2 leaves however small the window is."""

_MARK = "\n[truncated "
_M = TypeVar("_M", bound=UserMessage | AssistantMessage | ToolResult)


def missing_result(call: ToolCall) -> ToolResult:
    """The result of a call that has none in the transcript."""
    return ToolResult(call.id, call.name, [Text(MISSING)], is_error=True, wire_id=call.wire_id)


def with_text(message: AssistantMessage, text: str) -> AssistantMessage:
    """The answer with this in place of its text."""
    others = [part for part in message.content if not isinstance(part, Text)]
    return msgspec.structs.replace(message, content=[*others, Text(text)])


def without_media(message: Message) -> Message:
    """The message without pictures and documents, if it is the user's or a result."""
    if isinstance(message, AssistantMessage):
        return message
    content = [REFUSED if isinstance(part, Image | Document) else part for part in message.content]
    return msgspec.structs.replace(message, content=content)


def stamped(message: UserMessage) -> UserMessage:
    """The message with the time it was sent, which the prompt can't hold without changing at each call."""
    if message.at is None:
        return message
    offset = message.at.utcoffset()
    zone = "" if offset is None else str(timezone(offset))  # a zone's own name is not in the transcript
    stamp = _stamp(message.at.replace(second=0, microsecond=0, tzinfo=None), zone)
    return msgspec.structs.replace(message, content=[*message.content, stamp])


@functools.lru_cache(8)
def _stamp(minute: datetime, zone: str) -> Text:
    return Text(f"\n\n<time>{minute:%A %Y-%m-%d %H:%M} {zone}</time>")


def joined(pieces: Iterable[Sequence[UserPart]]) -> list[UserPart]:
    """The pieces as the content of one message, an empty line between them.

    Each stays a part of its own, the same whatever comes after it: a provider's cache recognises it.
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


def shortened(message: _M, reported: bool, limit: int) -> _M:
    """The message with its result, or each result `reported` in it, cut to `limit` characters."""
    match message:
        case ToolResult(content=[*content, Text(text)]) if text.startswith(_MARK):
            short = _cut(content, limit, missing=int(text.removeprefix(_MARK).partition(" ")[0]))
            content = message.content
        case ToolResult(content=content):
            short = _cut(content, limit)
        case UserMessage(content=content) if reported:
            short = [*chain.from_iterable(_cut([part], limit) for part in content)]
        case _:
            return message
    return message if short == content else msgspec.structs.replace(message, content=short)


def result_lengths(message: Message, reported: bool) -> list[int]:
    """Characters of the message's result, or of each result `reported` in it."""
    lengths = [_length(part) for part in message.content if isinstance(part, Text | Document)]
    if isinstance(message, ToolResult):
        return [sum(lengths)]
    return lengths if reported and isinstance(message, UserMessage) else []


def fair_share(lengths: Sequence[int], room: int) -> int:
    """The most characters for each, so that together they have `room`."""
    for left, length in zip(range(len(lengths), 0, -1), sorted(lengths), strict=True):
        if length * left > room:
            return max(room // left, MIN_RESULT_CHARS)
        room -= length
    return TRUNCATE_OVER_CHARS


def _cut(parts: Sequence[UserPart], limit: int, missing: int = 0) -> list[UserPart]:
    """The parts with `limit` characters, and how many are missing, with those that were before.

    A document for which there is no room becomes its text.
    """
    kept: list[UserPart] = []
    room = limit
    for part in parts:
        if isinstance(part, Document) and _length(part) > room:
            part = Text(document_text(part))
        if isinstance(part, Text):
            kept += [Text(part.text[: max(room, 0)])] if room > 0 else []
            room -= len(part.text)
        else:
            kept.append(part)
            room -= _length(part)
    missing -= min(room, 0)
    return [*kept, Text(f"{_MARK}{missing} chars]")] if missing else kept


def _length(part: UserPart) -> int:
    """Its characters; of a document as many as its pages weigh, or its bytes, of a picture none."""
    match part:
        case Text(text):
            return len(text)
        case Document():
            return max(int(estimate_document(part) * BYTES_PER_TOKEN), len(part.data))
        case _:
            return 0
