"""Anthropic Messages: what goes into a request; `anthropic_answer` reads what comes back.

https://platform.claude.com/docs/en/api/messages
"""

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from denizen.messages import (
    AssistantMessage,
    Document,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UserPart,
)
from denizen.models.anthropic_answer import AnthropicAnswer
from denizen.models.encoding import Encoded, encode_json
from denizen.models.providers import PROVIDERS
from denizen.models.reasoning import anthropic_fields, thinks_adaptively
from denizen.models.request_fields import closed, with_options
from denizen.models.wire import WireModel
from denizen.ports import ModelRequest
from denizen.text.documents import as_taken, text_in

Json = dict[str, Any]

VERSION: Final = "2023-06-01"
_CACHE_CONTROL: Final[Mapping[str, Json]] = {"5m": {"type": "ephemeral"}, "1h": {"type": "ephemeral", "ttl": "1h"}}
"""The cache mark of a block, by its life there."""
_CLOSING_BYTES: Final = len(b"}]}")  # what closes a run: its last block, the content, the message
_TAKES_SCHEMAS: Final = re.compile(r"claude-[a-z]+-(4-[1-9](?!\d)|[5-9])")
_SAMPLING: Final = {"temperature", "top_p", "top_k"}
_REFUSES_SAMPLING: Final = re.compile(r"claude-[a-z]+-(4-[7-9](?!\d)|[5-9])|claude-mythos|claude-fable")
"""Models that refuse sampling options, from Claude Opus 4.7 on; earlier ones only while they think."""
_NOT_IN_IDS: Final = re.compile(r"[^a-zA-Z0-9_-]")


class AnthropicModel(WireModel):
    """A model of Anthropic's Messages API, or of a server that speaks it.

    The prompt's tools, system text and last two turns of the user are marked for the provider's cache: what one call
    writes there the next one reads.
    """

    path = "/v1/messages"
    list_path = "/v1/models?limit=1000"
    count_path = "/count_tokens"
    counted_fields = frozenset({"model", "system", "tools", "tool_choice", "thinking", "output_config"})
    usual = PROVIDERS["anthropic"]
    api = "anthropic"

    @property
    def _cached(self) -> Json:
        return _CACHE_CONTROL[self._chosen.cache_life]

    def _credentials(self, api_key: str) -> Mapping[str, str]:
        fields = {"anthropic-version": VERSION}
        if self._chosen.betas:
            fields["anthropic-beta"] = ",".join(self._chosen.betas)
        return {"x-api-key": api_key, **fields} if api_key else fields

    def _new_answer(self) -> AnthropicAnswer:
        return AnthropicAnswer(self._identity)

    def _fields(self, request: ModelRequest) -> Json:
        fields: Json = {"model": self.model, "max_tokens": request.max_tokens, "stream": request.stream}
        if request.system.strip():
            fields["system"] = [_text(request.system) | {"cache_control": self._cached}]
        if request.tools:
            fields["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in request.tools
            ]
        if request.output_schema and _TAKES_SCHEMAS.match(self.model) and (schema := closed(request.output_schema)):
            fields["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        thoughts = anthropic_fields(self.model, request.reasoning, request.max_tokens)
        if config := thoughts.pop("output_config", None):
            fields["output_config"] = fields.get("output_config", {}) | config
        fields = with_options(fields | thoughts, request.options)
        refused = _SAMPLING if _REFUSES_SAMPLING.search(self.model) else _SAMPLING - {"top_p"} if thoughts else set()
        fields = {name: value for name, value in fields.items() if name not in refused}
        if "stop" in fields:
            fields["stop_sequences"] = fields.pop("stop")
        if fields.get("tools"):
            fields["tools"] = [*fields["tools"][:-1], {**fields["tools"][-1], "cache_control": self._cached}]
        return fields

    def _latest(self, encoded: Encoded) -> list[bytes]:
        """The last two runs of the user are marked."""
        runs, texts = encoded.runs, [*encoded.texts]
        mark = b',"cache_control":' + encode_json(self._cached)
        latest = range(max(-len(runs), -4), 0)  # of four, at least two are the user's
        for place in [place for place in latest if not runs[place].assistant][-2:]:
            texts[place] = texts[place][:-_CLOSING_BYTES] + mark + texts[place][-_CLOSING_BYTES:]
        return texts

    def _needs_own_thoughts(self, reply: AssistantMessage) -> bool:
        kinds = [block["type"] for block in self._blocks(reply)]
        return not thinks_adaptively(self.model) and kinds[:1] not in (["thinking"], ["redacted_thinking"])

    def _run(self, run: Sequence[Message]) -> bytes:
        role = "assistant" if isinstance(run[0], AssistantMessage) else "user"
        results_first = sorted(run, key=lambda message: not isinstance(message, ToolResult))
        blocks = [block for message in results_first for block in self._blocks(message)]
        return encode_json({"role": role, "content": blocks}) if blocks else b""

    def _blocks(self, message: Message) -> list[Json]:
        if isinstance(message, ToolResult):
            block: Json = {"type": "tool_result", "tool_use_id": _own_id(message.sent_id)}
            if content := self._said(message.content):
                block["content"] = content
            return [block | {"is_error": True} if message.is_error else block]
        if not isinstance(message, AssistantMessage):
            return self._said(message.content)
        blocks: list[Json] = []
        for part in self._sent(message):
            match part:
                case Text(text) if text.strip():
                    blocks.append(_text(text))
                case Thinking(text) if signature := self._identity.signature_of(part, message):
                    blocks.append({"type": "thinking", "thinking": text, "signature": signature})
                case ToolCall(name=name, args=args, sent_id=id):
                    blocks.append({"type": "tool_use", "id": _own_id(id), "name": name, "input": args})
                case Opaque(self.author, {"type": _} as data):
                    blocks.append(data)
                case Opaque(self.author, dict(data)) if blocks:  # fields of the block before it
                    blocks[-1] = blocks[-1] | data
        return blocks

    def _said(self, parts: Sequence[UserPart]) -> list[Json]:
        """Its blocks; empty words aren't allowed."""
        blocks: list[Json] = []
        for part in as_taken(parts, self.provider.documents):
            match part:
                case Image(media_type, data):
                    blocks.append({"type": "image", "source": _base64(media_type, data)})
                case Document("text/plain" as media_type, name=name):
                    source = {"type": "text", "media_type": media_type, "data": text_in(part)}
                    blocks.append({"type": "document", "source": source, "title": name or None})
                case Document(media_type, data, name):
                    blocks.append({"type": "document", "source": _base64(media_type, data), "title": name or None})
                case Text(text) if text.strip():
                    blocks.append(_text(text))
        return blocks


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _base64(media_type: str, data: bytes) -> Json:
    return {"type": "base64", "media_type": media_type, "data": base64.b64encode(data).decode()}


def _own_id(id: str) -> str:
    """An id that another provider may have made, in letters that are allowed here."""
    return _NOT_IN_IDS.sub("_", id)
