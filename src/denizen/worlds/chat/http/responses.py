"""Responses, in the shapes of OpenAI's API; what they share with Chat Completions is there."""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal
from uuid import uuid4

import msgspec
from aiohttp import web

from denizen.entries import SystemEntry
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult, Usage, UserMessage
from denizen.worlds.chat.http.completions import (
    MAX_BODY,
    MODEL,
    FunctionTool,
    Part,
    arguments,
    last,
    parts,
    schema,
    words,
)
from denizen.worlds.chat.http.requests import GATEWAY, Refused, read_body
from denizen.worlds.chat.http.stream import EventStream, event_stream
from denizen.worlds.chat.http.turns import SESSION, Conversation, Reply, Said, Thought, answer


class ResponseItem(msgspec.Struct):
    """What was said, called, or given: an item without a type is a message."""

    type: Literal["message", "function_call", "function_call_output", "reasoning"] = "message"
    role: Literal["system", "developer", "user", "assistant"] = "user"
    content: str | list[Part] | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = "{}"
    output: str | list[Part] = ""


class ResponseTool(FunctionTool):
    """A tool of the caller's."""

    type: Literal["function"] = "function"


class ResponseRequest(msgspec.Struct):
    """What a client posts; what isn't listed here is the agent's to decide, and ignored."""

    input: str | list[ResponseItem]
    model: str = MODEL
    instructions: str | None = None
    stream: bool | None = False
    tools: list[ResponseTool] | None = None
    tool_choice: Any = "auto"
    previous_response_id: str | None = None


async def post_response(request: web.Request) -> web.StreamResponse:
    """Answer a conversation."""
    asked, gateway = await read_body(request, ResponseRequest, MAX_BODY), request.app[GATEWAY]
    if asked.previous_response_id:
        raise Refused(400, f"No responses are kept here. Send the whole conversation, or name a session: {SESSION}.")
    given = (asked.tools or []) if asked.tool_choice != "none" else []
    tools = [schema(tool.name, tool.description, tool.parameters) for tool in given]
    said = await asyncio.to_thread(_said, asked.input)
    if asked.instructions:
        said.insert(0, SystemEntry(text=asked.instructions, by_operator=True))
    pieces = answer(gateway, Conversation.of(request, said, tools))
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
        return web.json_response(_completed(response, await last(pieces), f"msg_{uuid4().hex}"))
    async with event_stream(request, pieces) as stream:
        await _send(stream, response)
    return stream.response


async def _send(stream: EventStream, response: dict[str, Any]) -> None:
    message, nothing, text, number = f"msg_{uuid4().hex}", list[Any](), False, 0

    async def send(kind: str, **data: Any) -> None:
        nonlocal number
        await stream.send({"type": f"response.{kind}", "sequence_number": number, **data}, f"response.{kind}")
        number += 1

    at: dict[str, Any] = {"item_id": message, "output_index": 0, "content_index": 0}
    await send("created", response=response)
    async for piece in stream.pieces:
        if isinstance(piece, str):
            if not text:
                opened = {**_message(message, ""), "status": "in_progress", "content": nothing}
                await send("output_item.added", output_index=0, item=opened)
                await send("content_part.added", **at, part=_text(""))
                text = True
            await send("output_text.delta", **at, delta=piece, logprobs=[])
            continue
        if isinstance(piece, Thought):
            continue
        completed = _completed(response, piece, message)
        for index, item in enumerate(completed["output"]):
            if item["type"] == "message":
                await send("output_text.done", **at, text=piece.text, logprobs=[])
                await send("content_part.done", **at, part=_text(piece.text))
            else:
                opened = {**item, "arguments": "", "status": "in_progress"}
                call = {"item_id": item["id"], "output_index": index}
                await send("output_item.added", output_index=index, item=opened)
                await send("function_call_arguments.delta", **call, delta=item["arguments"])
                await send("function_call_arguments.done", **call, name=item["name"], arguments=item["arguments"])
            await send("output_item.done", output_index=index, item=item)
        await send("incomplete" if piece.cut else "completed", response=completed)


def _completed(response: dict[str, Any], reply: Reply, message: str) -> dict[str, Any]:
    output = [_message(message, reply.text)] if reply.text else []
    output += [
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
    ended = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}} if reply.cut else {}
    return {**response, "status": "completed", "output": output, "usage": _usage(reply.usage), **ended}


def _message(name: str, text: str) -> dict[str, Any]:
    return {"type": "message", "id": name, "role": "assistant", "status": "completed", "content": [_text(text)]}


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(usage: Usage) -> dict[str, Any]:
    sent = (usage.input or 0) + (usage.cache_read or 0) + (usage.cache_write or 0)
    return {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": usage.cache_read or 0},
        "output_tokens": usage.output or 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sent + (usage.output or 0),
    }


def _said(given: str | Sequence[ResponseItem]) -> list[Said]:
    """The conversation; calls belong to the assistant's message before them."""
    said: list[Said] = []
    for item in [ResponseItem(content=given)] if isinstance(given, str) else given:
        match item.type, item.role:
            case "function_call", _:
                call = ToolCall(item.call_id, item.name, arguments(item.arguments))
                if said and isinstance(said[-1], AssistantMessage):
                    said[-1] = AssistantMessage([*said[-1].content, call], MODEL)
                else:
                    said.append(AssistantMessage([call], MODEL))
            case "function_call_output", _:
                said.append(ToolResult(item.call_id, "", [Text(words(item.output))]))
            case "reasoning", _:
                pass
            case _, "user":
                said.append(UserMessage(parts(item.content)))
            case _, "assistant":
                said.append(AssistantMessage([Text(words(item.content))], MODEL))
            case _:
                said.append(SystemEntry(text=words(item.content), by_operator=True))
    return said


ROUTES = [web.post("/v1/responses", post_response)]
