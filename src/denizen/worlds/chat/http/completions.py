"""Chat Completions and the list of models, in the shapes of OpenAI's API."""

import asyncio
from base64 import b64decode
from collections.abc import Sequence
from typing import Annotated, Any, Literal
from uuid import uuid4

import msgspec
from aiohttp import web

from denizen.engine.output import OutputType
from denizen.entries import SystemEntry
from denizen.errors import ConfigError
from denizen.messages import (
    AssistantMessage,
    Document,
    Image,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
    UserPart,
    from_outside,
)
from denizen.ports import Schema
from denizen.text.documents import attached_document, attached_picture
from denizen.worlds.chat.http import conversation
from denizen.worlds.chat.http.answer import answer
from denizen.worlds.chat.http.requests import GATEWAY, Refused, read_body, refusing
from denizen.worlds.chat.http.stream import event_stream

MODEL = "denizen"
"""The model's name in lists; requests may use any."""
MAX_CONVERSATION_BYTES = 20_000_000
"""Limit of a conversation."""


class ImageUrl(msgspec.Struct):
    """The URL of a picture."""

    url: str


class File(msgspec.Struct):
    """A document: its name, and its bytes in a `data:` URL."""

    filename: str = ""
    file_data: str = ""


class ContentPart(File):
    """A part of a message: text, or a picture or document in a `data:` URL."""

    type: str = "text"
    text: str = ""
    image_url: ImageUrl | str = ""
    file: File | None = None


class FunctionCall(msgspec.Struct):
    """The function and its arguments, as JSON text."""

    name: str
    arguments: str = "{}"


class ChatToolCall(msgspec.Struct):
    """A call of the client's tool."""

    id: str
    function: FunctionCall
    type: Literal["function"] = "function"


class ChatMessage(msgspec.Struct):
    """A message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[ContentPart] | None = None
    tool_calls: list[ChatToolCall] | None = None
    tool_call_id: str = ""


class FunctionDefinition(msgspec.Struct):
    """A client's tool."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ChatTool(msgspec.Struct):
    """A client's tool, as Chat Completions wraps it."""

    function: FunctionDefinition
    type: Literal["function"] = "function"


class ChatStreamOptions(msgspec.Struct):
    """Extras of a stream."""

    include_usage: bool | None = False


class JsonSchema(msgspec.Struct):
    """The schema of an answer."""

    schema: dict[str, Any] | None = None


class TextFormat(JsonSchema):
    """The form of the answer; the schema is here in Responses, one level down in Chat Completions."""

    type: Literal["text", "json_object", "json_schema"] = "text"
    json_schema: JsonSchema | None = None

    @property
    def output(self) -> OutputType | None:
        """The required form of the answer; None: text. Raises HTTPException for a missing or invalid schema."""
        if self.type == "text":
            return None
        found = (self.json_schema or self).schema if self.type == "json_schema" else {"type": "object"}
        if found is None:
            raise Refused(400, "The format json_schema needs a schema.")
        with refusing(400, ConfigError):
            return OutputType(found)


ToolChoice = Annotated[Any, msgspec.Meta(extra_json_schema={"enum": ["auto", "none", None]})]


def calls_allowed(choice: ToolChoice) -> bool:
    """Whether the client's tools may be called. Raises HTTPException for a choice that an agent can't promise."""
    if choice not in ("auto", "none", None):
        raise Refused(400, "tool_choice must be auto or none: the agent decides which tools it calls.")
    return choice != "none"


class ChatRequest(msgspec.Struct):
    """The body of a request; other fields are ignored, because the agent decides about them."""

    messages: list[ChatMessage]
    model: str = MODEL
    stream: bool | None = False
    stream_options: ChatStreamOptions | None = None
    tools: list[ChatTool] | None = None
    tool_choice: ToolChoice = "auto"
    response_format: TextFormat | None = None
    n: Literal[1] | None = 1


async def get_models(request: web.Request) -> web.Response:
    """List the agent as the only model."""
    return web.json_response({"object": "list", "data": [_model(request)]})


async def get_model(request: web.Request) -> web.Response:
    """Describe the agent as a model."""
    if request.match_info["id"] != MODEL:
        raise Refused(404, f"The only model is {MODEL}.")
    return web.json_response(_model(request))


def _model(request: web.Request) -> dict[str, Any]:
    began = int(request.app[GATEWAY].agent.record.clock.now().timestamp())
    return {"id": MODEL, "object": "model", "created": began, "owned_by": "denizen"}


async def post_completion(request: web.Request) -> web.StreamResponse:
    """Answer a conversation."""
    asked, gateway = await read_body(request, ChatRequest, MAX_CONVERSATION_BYTES), request.app[GATEWAY]
    given = (asked.tools or []) if calls_allowed(asked.tool_choice) else []
    tools = [schema(tool.function.name, tool.function.description, tool.function.parameters) for tool in given]
    items = await asyncio.to_thread(_conversation, asked.messages)
    output = asked.response_format.output if asked.response_format else None
    pieces = answer(gateway, conversation.ConversationRequest.of(request, items, tools, output))
    shared = {
        "id": f"chatcmpl-{uuid4().hex}",
        "created": int(gateway.agent.record.clock.now().timestamp()),
        "model": asked.model,
    }
    if not asked.stream:
        reply = await last(pieces)
        thoughts = {"reasoning_content": "\n\n".join(reply.thoughts)} if reply.thoughts else {}
        message = {"role": "assistant", "content": reply.text or None, **thoughts, **_calls(reply.calls)}
        choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
        usage = _usage(reply.usage)
        return web.json_response({**shared, "object": "chat.completion", "choices": [choice], "usage": usage})

    shared["object"] = "chat.completion.chunk"
    wants_usage = asked.stream_options is not None and asked.stream_options.include_usage
    rest: dict[str, Any] = {"usage": None} if wants_usage else {}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**shared, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **rest}

    async with event_stream(request, pieces) as stream:
        await stream.send(chunk({"role": "assistant", "content": ""}))
        async for piece in stream.pieces():
            if isinstance(piece, str):
                await stream.send(chunk({"content": piece}))
                continue
            if isinstance(piece, conversation.Thought):  # as DeepSeek, vLLM and others call it
                await stream.send(chunk({"reasoning_content": piece.text}))
                continue
            for at, call in enumerate(_calls(piece.calls).get("tool_calls", [])):
                await stream.send(chunk({"tool_calls": [{"index": at, **call}]}))
            await stream.send(chunk({}, _finish(piece)))
            if wants_usage:
                await stream.send({**shared, "choices": [], "usage": _usage(piece.usage)})
            await stream.write(b"data: [DONE]\n\n")
    return stream.response


def schema(name: str, description: str | None, parameters: dict[str, Any] | None) -> Schema:
    """A client's tool."""
    return Schema(name, description or "", parameters or {"type": "object", "properties": {}})


def arguments(text: str) -> dict[str, Any]:
    """The arguments of a call, from JSON text. Raises HTTPException."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(400, f"The arguments of a call must be a JSON object: {error}.") from error


async def last(pieces: conversation.AnswerPieces) -> conversation.FinalAnswer:
    """The final answer."""
    found = conversation.FinalAnswer(text="")
    async for piece in pieces:
        if isinstance(piece, conversation.FinalAnswer):
            found = piece
    return found


def _conversation(messages: Sequence[ChatMessage]) -> list[conversation.ConversationItem]:
    items: list[conversation.ConversationItem] = []
    names: dict[str, str] = {}
    for message in messages:
        if message.role == "user":
            items.append(UserMessage(parts(message.content)))
            continue
        text = words(message.content)
        match message.role:
            case "assistant":
                calls = [
                    ToolCall(c.id, c.function.name, arguments(c.function.arguments)) for c in message.tool_calls or []
                ]
                names |= {call.id: call.name for call in calls}
                items.append(AssistantMessage([*([Text(text)] if text else []), *calls], MODEL))
            case "tool":
                items.append(ToolResult(message.tool_call_id, names.get(message.tool_call_id, ""), [Text(text)]))
            case _:
                items.append(SystemEntry(text=text, by_operator=True))
    return items


def parts(content: str | Sequence[ContentPart] | None) -> list[UserPart]:
    """The parts of a user's message; reading documents takes a while.

    Raises HTTPException for anything but text, or a picture or document in a `data:` URL.
    """
    if content is None or isinstance(content, str):
        return [Text(content or "")]
    return [_part(part) for part in content]


def _part(part: ContentPart) -> UserPart:
    with refusing(400, ConfigError):
        if "image" in part.type:
            return from_outside(_image(part))
        if "file" in part.type:
            return from_outside(_document(part.file or part))
    return Text(words([part]))


def _image(part: ContentPart) -> Image:
    url = part.image_url if isinstance(part.image_url, str) else part.image_url.url
    media_type, data = _data(url, "picture")
    if not media_type.startswith("image/"):
        raise Refused(400, "Pictures aren't fetched: send them as data: URLs (data:image/png;base64,…).")
    return attached_picture(data, "The file of image_url")


def _document(file: File) -> Document:
    media_type, data = _data(file.file_data, "file")
    if not media_type:
        raise Refused(400, "Files aren't fetched: send them as data: URLs (data:application/pdf;base64,…).")
    return attached_document(media_type, data, file.filename or "file")


def _data(url: str, what: str) -> tuple[str, bytes]:
    """The media type and the bytes of a `data:` URL; both empty for other URLs."""
    media_type, marked, data = url.partition(";base64,")
    if not (marked and media_type.startswith("data:")):
        return "", b""
    try:
        return media_type.removeprefix("data:"), b64decode(data, validate=True)
    except ValueError as error:
        raise Refused(400, f"A {what}'s data: URL isn't base64: {error}.") from error


def words(content: str | Sequence[ContentPart] | None) -> str:
    """The text of a message. Raises HTTPException if it has other parts."""
    if content is None or isinstance(content, str):
        return content or ""
    if other := next((part.type for part in content if not part.type.endswith("text")), ""):
        raise Refused(400, f"This message can have text only, not {other!r}.")
    return "".join(part.text for part in content)


def _calls(calls: Sequence[ToolCall]) -> dict[str, Any]:
    shown = [ChatToolCall(call.id, FunctionCall(call.name, msgspec.json.encode(call.args).decode())) for call in calls]
    return {"tool_calls": msgspec.to_builtins(shown)} if calls else {}


def _finish(reply: conversation.FinalAnswer) -> str:
    return "tool_calls" if reply.calls else "length" if reply.is_cut else "stop"


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "prompt_tokens": usage.sent,
        "completion_tokens": usage.output or 0,
        "total_tokens": usage.context,
    }


ROUTES = [
    web.get("/v1/models", get_models),
    web.get("/v1/models/{id}", get_model),
    web.post("/v1/chat/completions", post_completion),
]
