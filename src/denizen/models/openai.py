"""OpenAI Chat Completions, as many providers speak it.

https://platform.openai.com/docs/api-reference/chat
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Any, Final

from denizen.config.pattern import pattern
from denizen.errors import ModelError
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
from denizen.models.encoding import data_url, encode_json
from denizen.models.openai_answer import OpenAIAnswer
from denizen.models.providers import PROVIDERS
from denizen.models.reasoning import openai_fields
from denizen.models.refusals import adapted
from denizen.models.request_fields import shortened, tools_and_format, with_options
from denizen.models.wire import WireModel
from denizen.ports import ModelRequest
from denizen.text.documents import as_taken

_SHORT_ID: Final = pattern(r"[a-zA-Z0-9]{9}")

Json = dict[str, Any]

_MISTRAL: Final = pattern(r"(mis|minis|magis|devs|codes|pix|mix)tral", re.IGNORECASE)
"""Its models want an answer between results and the user, whoever serves them."""
_LABELS: Final = {Image: "The picture", Document: "The document"}
_RESULTS_READ: Final[Json] = {"role": "assistant", "content": "I have the results."}


class OpenAIModel(WireModel):
    """A model of OpenAI's Chat Completions API, or of one of the many servers that speak it.

    What sets a provider apart is in its `Provider`.
    """

    path = "/chat/completions"
    usual = PROVIDERS["openai"]
    api = "chat"

    def _adapts_to(self, error: ModelError) -> bool:
        known, self.provider = self.provider, adapted(self.provider, error)
        return self.provider != known

    def _new_answer(self) -> OpenAIAnswer:
        return OpenAIAnswer(self._identity, reasoning_is_extra=self.provider.reasoning_is_extra)

    def _head(self, request: ModelRequest) -> bytes:
        system = {"role": "system", "content": request.system}
        return super()._head(request) + (encode_json(system) if request.system.strip() else b"")

    def _fields(self, request: ModelRequest) -> Json:
        fields: Json = {"model": self.model, self.provider.max_tokens: request.max_tokens, "stream": request.stream}
        if request.stream and self.provider.stream_usage:
            fields["stream_options"] = {"include_usage": True}
        tools, answer = tools_and_format(request, self.provider.json_schema)
        if tools:
            fields["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in tools
            ]
        if answer:
            kind = answer.pop("type")
            fields["response_format"] = {"type": kind, kind: answer} if answer else {"type": kind}
        if self.provider.cache_on_request and self.model.startswith(self.provider.cache_on_request):
            hour = {"ttl": "1h"} if self._chosen.cache_life == "1h" else {}
            fields["cache_control"] = {"type": "ephemeral", **hour}
        if request.reasoning is not None:
            fields |= openai_fields(self.provider, self.model, request.reasoning)
        return with_options(fields, request.options)

    def _run(self, run: Sequence[Message]) -> bytes:
        """Pictures and documents don't fit into results: they follow after them."""
        messages: list[Json | None] = []
        below: list[UserPart] = []
        said: list[Json | None] = []
        for message in run:
            match message:
                case AssistantMessage():
                    messages.append(self._answered(message))
                case ToolResult():
                    texts, files = _apart(as_taken(message.content, self.provider.documents))
                    for file in files:
                        below += [Text(f"{_LABELS[type(file)]} from {message.name}:"), file]
                    there = f"({_LABELS[type(files[0])].lower()} is below)" if files else "(nothing)"
                    text = "".join(texts) or there
                    messages.append({"role": "tool", "tool_call_id": self._id(message.sent_id), "content": text})
                case _:
                    said.append(_said(as_taken(message.content, self.provider.documents)))
        if below:
            said.insert(0, _said(below))
        if messages and any(said) and (self.provider.reply_after_results or _MISTRAL.search(self.model)):
            messages.append(_RESULTS_READ)
        return b",".join([encode_json(message) for message in messages + said if message])

    def _answered(self, message: AssistantMessage) -> Json | None:
        """Its words and calls, with what this provider had added to them or to the message as a whole."""
        text = message.text
        calls: list[Json] = []
        rest: Json = {}
        after_call = False
        for part in self._sent(message):
            match part:
                case ToolCall(name=name, args=args, sent_id=id):
                    function = {"name": name, "arguments": encode_json(args).decode()}
                    calls.append({"id": self._id(id), "type": "function", "function": function})
                case Opaque(self.author, {"reasoning_details": _} | {"extra_content": _} as data):
                    (calls[-1] if after_call else rest).update(data)
            after_call = isinstance(part, ToolCall)
        if calls:
            rest["tool_calls"] = calls
            ours = message.model.partition(":")[0] == self.provider.name
            thoughts = "".join(part.text for part in message.content if isinstance(part, Thinking))
            if ours and thoughts and self.provider.reasoning_field:
                rest[self.provider.reasoning_field] = thoughts
        return {"role": "assistant", "content": text or None, **rest} if text or calls else None

    def _needs_own_thoughts(self, reply: AssistantMessage) -> bool:
        back = self.provider.reasoning_field
        return bool(back) and back not in (self._answered(reply) or {})

    def _id(self, id: str) -> str:
        """An id that another provider may have made, as this one takes it."""
        if not self.provider.short_ids:
            return shortened(id, self.provider.id_chars or len(id))
        return id if _SHORT_ID.fullmatch(id) else hashlib.sha256(id.encode()).hexdigest()[:9]


def _apart(content: Sequence[UserPart]) -> tuple[list[str], list[Image | Document]]:
    """The texts, and what isn't text."""
    texts = [part.text for part in content if isinstance(part, Text)]
    return texts, [part for part in content if not isinstance(part, Text)]


def _said(content: Sequence[UserPart]) -> Json | None:
    parts: list[Json] = []
    for part in content:
        match part:
            case Image(media_type, data):
                parts.append({"type": "image_url", "image_url": {"url": data_url(media_type, data)}})
            case Document(media_type, data, name):
                parts.append({"type": "file", "file": {"filename": name, "file_data": data_url(media_type, data)}})
            case Text(text) if text.strip():
                parts.append({"type": "text", "text": text})
    match parts:
        case []:
            return None
        case [{"text": text}]:
            return {"role": "user", "content": text}
    return {"role": "user", "content": parts}
