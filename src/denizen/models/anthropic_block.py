"""A content block of an Anthropic answer, and what it is in our words."""

import secrets
from typing import Any, Final

import msgspec

from denizen.events import StreamEvent, TextDelta, TextEnd, ThinkingDelta, ThinkingEnd, ToolCallDelta, ToolCallEnd
from denizen.messages import AssistantPart, Opaque, Text, Thinking, ToolCall
from denizen.models.parsing import arguments

_SAYS_NOTHING: Final[tuple[Any, ...]] = (
    None,
    [],
    {"type": "direct"},
)  # the caller of a call that the model makes itself


class Delta(msgspec.Struct, gc=False):
    """Some more of a block, or of the message."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    partial_json: str = ""
    signature: str = ""
    citation: Any = None
    stop_reason: str | None = None


class Block:
    """A block as it grows: how it started, the pieces of its text or JSON, and fields that came one by one."""

    __slots__ = ("_made", "_pieces", "_start", "kind")

    def __init__(self, start: dict[str, Any]) -> None:
        self.kind = _word(start, "type")
        self._start = start
        if self.kind == "tool_use" and not _word(start, "id"):
            start["id"] = f"toolu_{secrets.token_hex(12)}"
        self._pieces = [_word(start, self.kind)] if self.kind in {"text", "thinking"} else []
        self._made: ToolCall | None = None

    @property
    def text(self) -> str:
        """Its words, thoughts or JSON so far."""
        return "".join(self._pieces)

    def extend(self, delta: Delta, payload: bytes, news: list[StreamEvent]) -> None:
        """Add a delta."""
        match delta.type:
            case "text_delta":
                self._pieces.append(delta.text)
                news.append(TextDelta(delta.text))
            case "thinking_delta":
                self._pieces.append(delta.thinking)
                news.append(ThinkingDelta(delta.thinking))
            case "input_json_delta":
                self._pieces.append(delta.partial_json)
                if self.kind == "tool_use":
                    news.append(ToolCallDelta(_word(self._start, "id"), _word(self._start, "name"), delta.partial_json))
            case "signature_delta":
                self._start["signature"] = delta.signature
            case "citations_delta":
                self._start["citations"] = [*(self._start.get("citations") or []), delta.citation]
            case _:
                self._merge(msgspec.json.decode(payload)["delta"])

    def _merge(self, delta: dict[str, Any]) -> None:
        """A kind of delta nobody has told us of: text grows, anything else replaces."""
        for key in delta.keys() - {"type"}:
            old, new = self._start.get(key), delta[key]
            self._start[key] = old + new if isinstance(old, str) and isinstance(new, str) else new

    def ended(self) -> list[StreamEvent]:
        """That it is whole."""
        match self.kind:
            case "text" if self.text:
                return [TextEnd(self.text)]
            case "thinking":
                return [ThinkingEnd(self.text)]
            case "tool_use":
                return [ToolCallEnd(self._call())]
        return []

    def parts(self, provider: str) -> list[AssistantPart]:
        """What it is in our words; what these can't hold follows it as `Opaque` without a type."""
        match self.kind:
            case "text":
                return [Text(self.text), *self._rest(provider, "citations")] if self.text else []
            case "thinking":
                return [Thinking(self.text, _word(self._start, "signature"))]
            case "tool_use":
                return [self._call(), *self._rest(provider, "caller", "toolset_name")]
        return [Opaque(provider, self._start | {"input": arguments(self.text)} if self.text else self._start)]

    def _rest(self, provider: str, *names: str) -> list[AssistantPart]:
        rest = {name: self._start[name] for name in names if self._start.get(name) not in _SAYS_NOTHING}
        return [Opaque(provider, rest)] if rest else []

    def _call(self) -> ToolCall:
        if self._made is None:
            given = self._start.get("input")
            args = arguments(self.text) if self.text else given if isinstance(given, dict) else {}
            self._made = ToolCall(_word(self._start, "id"), _word(self._start, "name"), args)
        return self._made


def _word(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""
