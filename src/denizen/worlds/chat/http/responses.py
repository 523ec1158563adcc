"""Responses, in the shapes of OpenAI's API; `completions` has the shapes that both share."""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal
from uuid import uuid4

import msgspec
from aiohttp import web

from denizen.entries import SystemEntry
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult, Usage, UserMessage
from denizen.worlds.chat.http import completions, conversation
from denizen.worlds.chat.http.answer import answer
from denizen.worlds.chat.http.requests import GATEWAY, Refused, read_body
from denizen.worlds.chat.http.stream import SseResponse, event_stream


class ResponseItem(msgspec.Struct):
    """A message, a call or its result; an item without a type is a message."""

    type: Literal["message", "function_call", "function_call_output", "reasoning"] = "message"
    role: Literal["system", "developer", "user", "assistant"] = "user"
    content: str | list[completions.ContentPart] | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = "{}"
    output: str | list[completions.ContentPart] = ""


class ResponseTool(completions.FunctionDefinition):
    """A client's tool."""

    type: Literal["function"] = "function"


class TextOptions(msgspec.Struct):
    """The form of the answer."""

    format: completions.TextFormat | None = None


class ResponseRequest(msgspec.Struct):
    """The body of a request; other fields are ignored, because the agent decides about them."""

    input: str | list[ResponseItem]
    model: str = completions.MODEL
    instructions: str | None = None
    stream: bool | None = False
    tools: list[ResponseTool] | None = None
    tool_choice: completions.ToolChoice = "auto"
    text: TextOptions | None = None
    previous_response_id: str | None = None


async def post_response(request: web.Request) -> web.StreamResponse:
    """Answer a conversation."""
    asked, gateway = await read_body(request, ResponseRequest, completions.MAX_CONVERSATION_BYTES), request.app[GATEWAY]
    if asked.previous_response_id:
        raise Refused(
            400,
            f"Responses aren't stored. Send the whole conversation, or name a session: {conversation.SESSION_HEADER}.",
        )
    given = (asked.tools or []) if completions.calls_allowed(asked.tool_choice) else []
    tools = [completions.schema(tool.name, tool.description, tool.parameters) for tool in given]
    items = await asyncio.to_thread(_conversation, asked.input)
    if asked.instructions:
        items.insert(0, SystemEntry(text=asked.instructions, by_operator=True))
    output = asked.text.format.output if asked.text and asked.text.format else None
    pieces = answer(gateway, conversation.ConversationRequest.of(request, items, tools, output))
    response: dict[str, Any] = {
        "id": f"resp_{uuid4().hex}",
        "object": "response",
        "created_at": int(gateway.agent.record.clock.now().timestamp()),
        "model": asked.model,
        "status": "in_progress",
        "output": [],
        "tools": msgspec.to_builtins(given),
        "tool_choice": asked.tool_choice,
        "parallel_tool_calls": True,
        "instructions": asked.instructions,
        "metadata": {},
        "store": False,
        "error": None,
        "incomplete_details": None,
    }
    if not asked.stream:
        reply = await completions.last(pieces)
        thoughts = [_reasoning(*reply.thoughts)] if reply.thoughts else []
        words = [_message(reply.text)] if reply.text else []
        return web.json_response(_completed(response, reply, [*thoughts, *words, *_calls(reply)]))
    async with event_stream(request, pieces) as stream:
        await _send(stream, response)
    return stream.response


async def _send(stream: SseResponse, response: dict[str, Any]) -> None:
    output, words, number = list[dict[str, Any]](), "", 0
    thought: dict[str, Any] | None = None
    message: dict[str, Any] | None = None

    async def send(kind: str, **data: Any) -> None:
        nonlocal number
        await stream.send({"type": f"response.{kind}", "sequence_number": number, **data}, f"response.{kind}")
        number += 1

    async def begin(item: dict[str, Any], **empty: Any) -> dict[str, Any]:
        """Announce the next item, still empty; how its events refer to it."""
        at = {"item_id": item["id"], "output_index": len(output)}
        output.append(item)
        await send(
            "output_item.added", output_index=at["output_index"], item={**item, "status": "in_progress", **empty}
        )
        return at

    async def end(at: dict[str, Any], item: dict[str, Any]) -> None:
        output[at["output_index"]] = item
        await send("output_item.done", output_index=at["output_index"], item=item)

    await send("created", response=response)
    async for piece in stream.pieces():
        if isinstance(piece, conversation.Thought):
            if thought is None:
                thought = {**await begin(_reasoning(), summary=[]), "summary_index": 0}
                words = ""
                await send("reasoning_summary_part.added", **thought, part=_summary(""))
            words += piece.text
            await send("reasoning_summary_text.delta", **thought, delta=piece.text)
            continue
        if thought is not None:
            await send("reasoning_summary_text.done", **thought, text=words)
            await send("reasoning_summary_part.done", **thought, part=_summary(words))
            await end(thought, {**output[thought["output_index"]], "summary": [_summary(words)]})
            thought = None
        if isinstance(piece, str):
            if message is None:
                message = {**await begin(_message(""), content=[]), "content_index": 0}
                await send("content_part.added", **message, part=_text(""))
            await send("output_text.delta", **message, delta=piece, logprobs=[])
            continue
        if message is not None:
            await send("output_text.done", **message, text=piece.text, logprobs=[])
            await send("content_part.done", **message, part=_text(piece.text))
            await end(message, {**output[message["output_index"]], "content": [_text(piece.text)]})
        for item in _calls(piece):
            at = await begin(item, arguments="")
            await send("function_call_arguments.delta", **at, delta=item["arguments"])
            await send("function_call_arguments.done", **at, name=item["name"], arguments=item["arguments"])
            await end(at, item)
        await send("incomplete" if piece.is_cut else "completed", response=_completed(response, piece, output))


def _completed(
    response: dict[str, Any], reply: conversation.FinalAnswer, output: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    ended = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}} if reply.is_cut else {}
    return {**response, "status": "completed", "output": output, "usage": _usage(reply.usage), **ended}


def _calls(reply: conversation.FinalAnswer) -> list[dict[str, Any]]:
    return [
        {
            "type": "function_call",
            "id": f"fc_{call.id}",
            "call_id": call.id,
            "name": call.name,
            "arguments": msgspec.json.encode(call.args).decode(),
            "status": "completed",
        }
        for call in reply.calls
    ]


def _reasoning(*thoughts: str) -> dict[str, Any]:
    return {"type": "reasoning", "id": f"rs_{uuid4().hex}", "summary": [*map(_summary, thoughts)]}


def _summary(text: str) -> dict[str, Any]:
    return {"type": "summary_text", "text": text}


def _message(text: str) -> dict[str, Any]:
    name = f"msg_{uuid4().hex}"
    return {"type": "message", "id": name, "role": "assistant", "status": "completed", "content": [_text(text)]}


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.sent,
        "input_tokens_details": {"cached_tokens": usage.cache_read or 0},
        "output_tokens": usage.output or 0,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": usage.context,
    }


def _conversation(given: str | Sequence[ResponseItem]) -> list[conversation.ConversationItem]:
    """The conversation; calls belong to the preceding assistant message."""
    items: list[conversation.ConversationItem] = []
    for item in [ResponseItem(content=given)] if isinstance(given, str) else given:
        match item.type, item.role:
            case "function_call", _:
                call = ToolCall(item.call_id, item.name, completions.arguments(item.arguments))
                if items and isinstance(items[-1], AssistantMessage):
                    items[-1] = AssistantMessage([*items[-1].content, call], completions.MODEL)
                else:
                    items.append(AssistantMessage([call], completions.MODEL))
            case "function_call_output", _:
                items.append(ToolResult(item.call_id, "", [Text(completions.words(item.output))]))
            case "reasoning", _:
                pass
            case _, "user":
                items.append(UserMessage(completions.parts(item.content)))
            case _, "assistant":
                items.append(AssistantMessage([Text(completions.words(item.content))], completions.MODEL))
            case _:
                items.append(SystemEntry(text=completions.words(item.content), by_operator=True))
    return items


ROUTES = [web.post("/v1/responses", post_response)]
