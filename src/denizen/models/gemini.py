"""Google's Gemini API in its own format: requests.

https://ai.google.dev/api/generate-content, https://ai.google.dev/gemini-api/docs/thought-signatures
"""

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

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
    UserMessage,
)
from denizen.models.encoding import Encoded, encode_json
from denizen.models.endpoint import Endpoint
from denizen.models.gemini_answer import MADE_ID_PREFIX, PART_FIELDS, GeminiAnswer
from denizen.models.gemini_schema import gemini_schema
from denizen.models.providers import PROVIDERS
from denizen.models.reasoning import gemini_fields
from denizen.models.request_fields import with_options
from denizen.models.wire import WireModel
from denizen.ports import ModelRequest
from denizen.text.documents import as_taken

_UP_TO_2: Final = re.compile(r"gemini-[12]\.|gemma|learnlm")
"""Models that take either tools or a schema of the answer, no pictures in results, and calls without signatures."""
_UNSIGNED: Final = base64.b64encode(b"skip_thought_signature_validator").decode()
"""Stands for the signature of a call that another model made."""
_PARTS: Final = frozenset(
    {"codeExecutionResult", "executableCode", "fileData", "inlineData", "text", "toolCall", "toolResponse"}
)
"""Kinds of parts; other kept fields belong to the answer as a whole, or to the provider's other formats."""
_OPTIONS: Final = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "stop": "stopSequences",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}

_OPEN: Final = b'{"role":"user","parts":['
_CLOSE: Final = b"]}"

Json = dict[str, Any]


class GeminiModel(WireModel):
    """A model of Google's Gemini API, or of a server that speaks its format."""

    path = ""
    list_path = "/models?pageSize=1000"
    messages_field = "contents"
    usual = PROVIDERS["google"]
    api = "gemini"

    async def _endpoint(self, request: ModelRequest) -> Endpoint:
        method = "streamGenerateContent?alt=sse" if request.stream else "generateContent"
        return self._to.at(f"{self._name}:{method}")

    async def count_tokens(self, request: ModelRequest) -> int | None:
        name = self._name.removeprefix("/").encode()
        body = [b'{"generateContentRequest":{"model":"%s",' % name, b"".join(self._body(request))[1:], b"}"]
        return await self._counted(self._to.at(f"{self._name}:countTokens"), body, "totalTokens")

    @property
    def _name(self) -> str:
        return "/" + quote(self.model if "/" in self.model else f"models/{self.model}")

    def _credentials(self, api_key: str) -> Mapping[str, str]:
        return {"x-goog-api-key": api_key} if api_key else {}

    def _new_answer(self) -> GeminiAnswer:
        return GeminiAnswer(self._identity)

    def _fields(self, request: ModelRequest) -> Json:
        old = bool(_UP_TO_2.search(self.model))
        options = {**request.options}
        config: Json = {"maxOutputTokens": request.max_tokens}
        config |= {_OPTIONS[name]: options.pop(name) for name in _OPTIONS.keys() & options.keys()}
        if thoughts := gemini_fields(self.model, request.reasoning):
            config["thinkingConfig"] = thoughts
        fields: Json = {}
        if request.system.strip():
            fields["systemInstruction"] = {"parts": [{"text": request.system}]}
        schema = request.output_schema
        if request.tools and not (schema and request.answers_now and old):
            declared = [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "parametersJsonSchema": gemini_schema(tool.parameters),
                }
                for tool in request.tools
            ]
            fields["tools"] = [{"functionDeclarations": declared}]
        if schema and not ("tools" in fields and old):
            config |= {"responseMimeType": "application/json", "responseJsonSchema": gemini_schema(schema)}
        extra = {**options.get("extra_body", {})}
        fields["generationConfig"] = config | extra.pop("generationConfig", {})
        return with_options(fields, options | {"extra_body": extra})

    def _latest(self, encoded: Encoded) -> list[bytes]:
        """Two turns of the user in a row, with nothing of the model's between them to send, are one."""
        runs, texts = encoded.runs, [*encoded.texts]
        for place in range(len(runs) - 1, 0, -1):
            if not runs[place].assistant and not runs[place - 1].assistant:
                texts[place - 1 : place + 1] = [texts[place - 1][: -len(_CLOSE)] + b"," + texts[place][len(_OPEN) :]]
        return texts

    def _run(self, run: Sequence[Message]) -> bytes:
        role, parts = "user", list[Json]()
        for message in run:
            if isinstance(message, AssistantMessage):
                role = "model"
                parts += self._answered(message)
            else:
                parts += self._told(message)
        parts.sort(key=lambda part: "functionResponse" not in part)
        return encode_json({"role": role, "parts": parts}) if parts else b""

    def _answered(self, message: AssistantMessage) -> list[Json]:
        """The parts of an answer as they came; those that only another provider understands are left out."""
        parts: list[Json] = []
        for part in self._sent(message):
            match part:
                case Text(text) if text:
                    parts.append({"text": text})
                case Thinking(text) if signature := self._identity.signature_of(part, message):
                    parts.append({"text": text, "thought": True, "thoughtSignature": signature})
                case ToolCall(name=name, args=args, sent_id=id):
                    parts.append({"functionCall": {**self._own_id(id), "name": name, "args": args}})
                case Opaque(self.author, dict(data)) if data.keys() <= PART_FIELDS:
                    parts[-1:] = [parts[-1] | data] if parts else []
                case Opaque(self.author, dict(data)) if data.keys() & _PARTS:
                    parts.append(data)
        first_call = next((part for part in parts if "functionCall" in part), {"thoughtSignature": ""})
        if not _UP_TO_2.search(self.model):
            first_call.setdefault("thoughtSignature", _UNSIGNED)
        return parts

    def _told(self, message: UserMessage | ToolResult) -> list[Json]:
        """The parts of what the user said, or of a tool's result: only newer models take files within one."""
        told = as_taken(message.content, self.provider.documents)
        if not isinstance(message, ToolResult):
            parts = (part for part in told if not isinstance(part, Text) or part.text.strip())
            return [{"text": part.text} if isinstance(part, Text) else _inline(part) for part in parts]
        files = [_inline(part) for part in told if not isinstance(part, Text)]
        text = "".join(part.text for part in told if isinstance(part, Text))
        result: Json = {**self._own_id(message.sent_id), "name": message.name}
        result["response"] = {"error" if message.is_error else "output": text}
        if files and _UP_TO_2.search(self.model):
            return [{"functionResponse": result}, {"text": f"What {message.name} shows:"}, *files]
        return [{"functionResponse": result | {"parts": files} if files else result}]

    def _own_id(self, id: str) -> Json:
        """The id of a call where Gemini, or another provider, gave it one."""
        return {} if id.startswith(MADE_ID_PREFIX) else {"id": id}


def _inline(part: Image | Document) -> Json:
    return {"inlineData": {"mimeType": part.media_type, "data": base64.b64encode(part.data).decode()}}
