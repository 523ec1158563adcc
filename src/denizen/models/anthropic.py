"""Anthropic Messages.

https://platform.claude.com/docs/en/api/messages
"""

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from denizen.messages import (
    AssistantMessage,
    AssistantPart,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from denizen.models.anthropic_answer import AnthropicAnswer
from denizen.models.encoding import Encoded, encode_json
from denizen.models.providers import PROVIDERS
from denizen.models.reasoning import anthropic_fields
from denizen.models.wire import WireModel, closed, with_options
from denizen.ports import ModelRequest, Schema

VERSION: Final = "2023-06-01"
_CACHED: Final = {"type": "ephemeral"}
_MARK: Final = b',"cache_control":' + encode_json(_CACHED)
_TAIL: Final = len(b"}]}")  # what closes a run: its last block, the content, the message
_TAKES_SCHEMAS: Final = re.compile(r"claude-[a-z]+-(4-[1-9](?!\d)|[5-9])")
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")

Block = dict[str, Any]


class AnthropicModel(WireModel):
    """A model of Anthropic's Messages API, or of a server that speaks it.

    The prompt's tools, system text and last two turns of the user are marked for the provider's cache: what one call
    writes there the next one reads.
    """

    path = "/v1/messages"
    usual = PROVIDERS["anthropic"]

    def _base(self, base_url: str) -> str:
        base_url, mark, query = base_url.partition("?")
        return base_url.rstrip("/").removesuffix("/v1") + mark + query

    def _credentials(self, api_key: str) -> Mapping[str, str]:
        version = {"anthropic-version": VERSION}
        return {"x-api-key": api_key, **version} if api_key else version

    def _new_answer(self) -> AnthropicAnswer:
        return AnthropicAnswer(self._origin)

    def _head(self, request: ModelRequest) -> bytes:
        fields: Block = {"model": self.model, "max_tokens": request.max_tokens, "stream": request.stream}
        if request.system.strip():
            fields["system"] = [_text(request.system) | {"cache_control": _CACHED}]
        if request.tools:
            *tools, last = map(_tool, request.tools)
            fields["tools"] = [*tools, last | {"cache_control": _CACHED}]
        if request.output_schema and _TAKES_SCHEMAS.match(self.model) and (schema := closed(request.output_schema)):
            fields["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
        thoughts = anthropic_fields(self.model, request.reasoning or "none", request.max_tokens)
        if config := thoughts.pop("output_config", None):
            fields["output_config"] = fields.get("output_config", {}) | config
        fields = with_options(fields | thoughts, request.options)
        if thoughts:  # these can't be chosen then
            fields = {name: value for name, value in fields.items() if name not in {"temperature", "top_k"}}
        if "stop" in fields:
            fields["stop_sequences"] = fields.pop("stop")
        return encode_json(fields)[:-1] + b',"messages":['

    def _latest(self, encoded: Encoded) -> list[bytes]:
        """The last two runs of the user are marked."""
        runs, texts = encoded.runs, [*encoded.texts]
        latest = range(max(-len(runs), -4), 0)  # of four, at least two are the user's
        for place in [place for place in latest if not runs[place].assistant][-2:]:
            texts[place] = texts[place][:-_TAIL] + _MARK + texts[place][-_TAIL:]
        return texts

    def _run(self, run: Sequence[Message]) -> bytes:
        role = "assistant" if isinstance(run[0], AssistantMessage) else "user"
        blocks = [block for message in sorted(run, key=_results_first) for block in self._blocks(message)]
        return encode_json({"role": role, "content": blocks}) if blocks else b""

    def _blocks(self, message: Message) -> list[Block]:
        match message:
            case AssistantMessage():
                return self._answered(message)
            case ToolResult():
                return [_result(message)]
            case _:
                return _said(message.content)

    def _answered(self, message: AssistantMessage) -> list[Block]:
        ours = message.model.partition(":")[0] in {"", self.provider.name}
        blocks: list[Block] = []
        for part in message.content:
            added = part.data if isinstance(part, Opaque) and part.provider == self.provider.name else None
            if blocks and isinstance(added, dict) and "type" not in added:
                blocks[-1] = blocks[-1] | added
            elif block := self._block(part, ours):
                blocks.append(block)
        return blocks

    def _block(self, part: AssistantPart, ours: bool) -> Block | None:
        match part:
            case Text(text) if text.strip():
                return _text(text)
            case Thinking(text, signature) if signature and ours:
                return {"type": "thinking", "thinking": text, "signature": signature}
            case ToolCall(id, name, args):
                return {"type": "tool_use", "id": _own_id(id), "name": name, "input": args}
            case Opaque(provider, {"type": _} as data) if provider == self.provider.name:
                return data
        return None


def _results_first(message: Message) -> bool:
    return not isinstance(message, ToolResult)


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _said(parts: Sequence[Text | Image]) -> list[Block]:
    """Its blocks; empty words aren't allowed."""
    spoken = [part for part in parts if isinstance(part, Image) or part.text.strip()]
    return [_text(part.text) if isinstance(part, Text) else _image(part) for part in spoken]


def _image(image: Image) -> Block:
    data = base64.b64encode(image.data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}


def _result(result: ToolResult) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": _own_id(result.call_id)}
    if content := _said(result.content):
        block["content"] = content
    if result.is_error:
        block["is_error"] = True
    return block


def _tool(schema: Schema) -> Block:
    return {"name": schema.name, "description": schema.description, "input_schema": schema.parameters}


def _own_id(id: str) -> str:
    """An id that another provider may have made, in letters that are allowed here."""
    return _FOREIGN.sub("_", id)
