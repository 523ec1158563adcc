"""Tool calls of an OpenAI stream: pieces that say, more or less clearly, to which call they belong."""

import secrets
from typing import Any

import msgspec

from denizen.events import StreamEvent, ToolCallDelta, ToolCallEnd
from denizen.messages import AssistantPart, Opaque, ToolCall
from denizen.models.parsing import arguments
from denizen.ports import INVALID_JSON


class FunctionDelta(msgspec.Struct, gc=False):
    """A piece of a call; a few servers send the arguments as an object."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CallDelta(msgspec.Struct, gc=False):
    """A piece of a call, and where it belongs: by index, by id, by both, or by neither."""

    index: int | None = None
    id: str | None = None
    function: FunctionDelta | None = None
    extra_content: Any = None


class Call:
    """A call as it grows."""

    __slots__ = ("_extra", "_id", "_index", "_made", "_name", "_pieces", "_said_id")

    def __init__(self, delta: CallDelta) -> None:
        self._index = delta.index
        self._said_id = delta.id or ""
        self._id = self._said_id or f"call_{secrets.token_hex(12)}"
        self._name = ""
        self._extra: Any = None
        self._pieces: list[str] = []
        self._made: ToolCall | None = None

    def extend(self, delta: CallDelta, news: list[StreamEvent]) -> None:
        """Add a piece. The name comes once, or the same each time."""
        function = delta.function or FunctionDelta()
        self._name = self._name or function.name or ""
        self._extra = delta.extra_content or self._extra
        piece = function.arguments or ""
        text = piece if isinstance(piece, str) else msgspec.json.encode(piece).decode()
        self._pieces.append(text)
        news.append(ToolCallDelta(self._id, self._name, text))

    def takes(self, delta: CallDelta) -> bool:
        """Whether the piece belongs here."""
        elsewhere = delta.index != self._index and delta.index is not None
        if delta.id and self._said_id:
            return delta.id == self._said_id and not elsewhere
        if elsewhere:
            return False
        named = delta.function and delta.function.name
        return bool(delta.id) or not (named and self._whole())

    def ended(self) -> list[StreamEvent]:
        """That nothing follows; said once."""
        return [] if self._made else [ToolCallEnd(self._call())]

    def parts(self, provider: str) -> list[AssistantPart]:
        """The call, and what its provider wants back with it."""
        extra = [Opaque(provider, {"extra_content": self._extra})] if self._extra else []
        return [self._call(), *extra]

    def _whole(self) -> bool:
        text = "".join(self._pieces)
        return bool(text.strip()) and INVALID_JSON not in arguments(text)

    def _call(self) -> ToolCall:
        if self._made is None:
            self._made = ToolCall(self._id, self._name, arguments("".join(self._pieces)))
        return self._made
