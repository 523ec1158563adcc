"""Messages as the providers' own servers would send them: in one piece, or as the events of a stream."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from denizen.messages import AssistantMessage

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wire:
    """One provider's way to say things. `prefix` is the path of its base URL; `error` is the body of a failure."""

    prefix: str
    whole: Callable[[AssistantMessage], bytes]
    streamed: Callable[[AssistantMessage], Sequence[bytes]]
    error: Callable[[int, str], Json]


def words(text: str) -> list[str]:
    """A text in pieces, as it comes from a model: words, each with the space before it."""
    first, *rest = text.split(" ")
    return [piece for piece in (first, *(f" {word}" for word in rest)) if piece]


def event(data: Json, name: str = "") -> bytes:
    """An event of a stream."""
    head = f"event: {name}\n" if name else ""
    return b"%sdata: %s\n\n" % (head.encode(), msgspec.json.encode(data))
