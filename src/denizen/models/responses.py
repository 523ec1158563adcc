"""OpenAI's Responses API, as OpenAI, Azure and others speak it: requests.

Nothing is kept at the provider (`store` is false): the whole conversation goes along each time, with the model's own
thoughts, encrypted, as it left them. https://platform.openai.com/docs/api-reference/responses
"""

import hashlib
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, Final

from denizen.errors import ModelError
from denizen.messages import (
    AssistantMessage,
    Document,
    Image,
    Message,
    Opaque,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
    UserPart,
)
from denizen.models.encoding import data_url, encode_json
from denizen.models.providers import PROVIDERS
from denizen.models.reasoning import responses_fields, takes_effort
from denizen.models.refusals import adapted
from denizen.models.request_fields import shortened, tools_and_format, with_options
from denizen.models.responses_answer import ResponsesAnswer
from denizen.models.wire import WireModel
from denizen.ports import ModelRequest
from denizen.text.documents import as_taken

MIN_ANSWER_TOKENS: Final = 16
"""Tokens: a smaller limit is refused."""
MAX_ID_CHARS: Final = 64
_UNSUPPORTED_OPTIONS: Final = frozenset({"top_k", "seed", "stop", "presence_penalty", "frequency_penalty"})
"""Settings that Responses has no fields for."""
_CHAT_FIELDS: Final = frozenset({"annotations", "extra_content", "reasoning_details"})
"""Fields of Chat Completions' answers, which older sessions keep under the same provider's name."""
_REFUSALS: Final = {
    "encrypted": re.compile(r"encrypted content is not supported|['\"`](include|reasoning\.encrypted)", re.IGNORECASE),
    "cache key": re.compile(r"prompt_cache_key"),
    "summary": re.compile(r"reasoning[._ ]summar", re.IGNORECASE),
}
"""Phrases of refusals that name a field not every model or account has."""

Json = dict[str, Any]


class ResponsesModel(WireModel):
    """A model of OpenAI's Responses API, or of a server that speaks it."""

    path = "/responses"
    count_path = "/input_tokens"
    counted_fields = frozenset(
        {"model", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning"}
    )
    messages_field = "input"
    usual = PROVIDERS["openai"]
    api = "responses"

    _refused: frozenset[str] = frozenset()
    _custom: frozenset[str] = frozenset()  # ids of calls whose results are sent in another form

    def _new_answer(self) -> ResponsesAnswer:
        return ResponsesAnswer(self._identity)

    def _adapts_to(self, error: ModelError) -> bool:
        """Some accounts get no summaries; some models encrypt nothing, or take no schema or no files."""
        known, refused = self.provider, set[str]()
        if error.status in {400, 422}:
            refused = {name for name, words in _REFUSALS.items() if words.search(error.message)} - self._refused
        self._refused |= refused
        self.provider = known if refused else adapted(known, error)
        return bool(refused) or self.provider != known

    def _fields(self, request: ModelRequest) -> Json:
        limit = max(request.max_tokens, MIN_ANSWER_TOKENS)
        fields: Json = {"model": self.model, "max_output_tokens": limit, "stream": request.stream, "store": False}
        if "encrypted" not in self._refused and takes_effort(self.provider, self.model):
            fields["include"] = ["reasoning.encrypted_content"]
        if request.session_key and "cache key" not in self._refused:  # the provider needn't know whose session it is
            fields["prompt_cache_key"] = hashlib.sha256(request.session_key.encode()).hexdigest()[:MAX_ID_CHARS]
        if request.system.strip():
            fields["instructions"] = request.system
        tools, answer = tools_and_format(request, self.provider.json_schema)
        if tools:
            fields["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in tools
            ]
        if answer:
            fields["text"] = {"format": answer}
        if request.reasoning is not None:
            fields |= responses_fields(self.provider, self.model, request.reasoning)
        if "summary" in self._refused and "reasoning" in fields:
            fields["reasoning"].pop("summary", None)
        merged = with_options(
            fields, {name: value for name, value in request.options.items() if name not in _UNSUPPORTED_OPTIONS}
        )
        if answer:  # next to what else the user says of the text
            merged["text"] = {**merged["text"], "format": answer}
        return merged

    def _run(self, run: Sequence[Message]) -> bytes:
        results_first = sorted(run, key=lambda message: not isinstance(message, ToolResult))
        items = [item for message in results_first for item in self._items(message)]
        return b",".join(map(encode_json, items))

    def _items(self, message: Message) -> list[Json]:
        match message:
            case AssistantMessage():
                return self._answered(message)
            case ToolResult(sent_id=call_id):
                kind = "custom_tool_call_output" if call_id in self._custom else "function_call_output"
                output = self._said(message) or "(nothing)"
                return [{"type": kind, "call_id": shortened(call_id, MAX_ID_CHARS), "output": output}]
        content = self._said(message)
        return [{"role": "user", "content": content}] if content else []

    def _said(self, message: UserMessage | ToolResult) -> str | list[Json]:
        return _said(as_taken(message.content, self.provider.documents))

    def _answered(self, message: AssistantMessage) -> list[Json]:
        """Its items: those of this provider as they came, others in the plainest form."""
        items: list[Json] = []
        begun = False  # the last item may still get further fields
        for part in self._sent(message):
            if part == Text(""):
                continue
            match part:
                case Text(text) if begun and "texts" in items[-1]:
                    items[-1]["texts"].append(text)
                case Text(text):
                    items.append({"texts": [text]})
                case ToolCall(name=name, args=args, sent_id=id):
                    arguments = encode_json(args).decode()
                    items.append(
                        {
                            "type": "function_call",
                            "call_id": shortened(id, MAX_ID_CHARS),
                            "name": name,
                            "arguments": arguments,
                        }
                    )
                case Opaque(self.author, {"type": "custom_tool_call", "call_id": str(id)} as item) if begun:
                    items[-1] = item
                    self._custom |= {id}
                case Opaque(self.author, {"type": str()} as item):
                    items.append(item)
                case Opaque(self.author, dict(fields)) if begun and not fields.keys() & _CHAT_FIELDS:
                    items[-1] = _whole(items[-1], fields)
            begun = isinstance(part, Text | ToolCall)
        while items and items[-1].get("type") == "reasoning":  # refused without what was thought of
            items.pop()
        return [{"role": "assistant", "content": "".join(each["texts"])} if "texts" in each else each for each in items]


def _whole(item: Json, fields: Json) -> Json:
    """The item as it came: what our parts hold of it, and its further fields."""
    if "texts" not in item:
        return {"status": "completed", **item, **fields}
    nothing: Json = {}
    contents = [
        {"type": "refusal", "refusal": text}
        if rest.get("type") == "refusal"
        else {"type": "output_text", "text": text, "annotations": [], **rest}
        for text, rest in zip_longest(item["texts"], fields.get("content", ()), fillvalue=nothing)
    ]
    return {"type": "message", "role": "assistant", "status": "completed", **fields, "content": contents}


def _said(content: Sequence[UserPart]) -> str | list[Json]:
    """The content of a person's message or a tool's result: plain text if there is nothing else."""
    parts: list[Json] = []
    for part in content:
        match part:
            case Image(media_type, data):
                parts.append({"type": "input_image", "image_url": data_url(media_type, data), "detail": "auto"})
            case Document(media_type, data, name):
                parts.append({"type": "input_file", "filename": name, "file_data": data_url(media_type, data)})
            case Text(text) if text.strip():
                parts.append({"type": "input_text", "text": text})
    match parts:
        case [{"text": str(text)}]:
            return text
    return parts
