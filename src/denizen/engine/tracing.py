"""Traces through the OpenTelemetry API, by its conventions for generative AI: one span per turn, model call and tool.

Where no SDK is set up nothing is recorded and nothing is paid.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from denizen.engine import conventions as named
from denizen.errors import ModelError
from denizen.messages import AssistantMessage, Message, Text, Thinking, ToolCall, ToolResult
from denizen.ports import ModelRequest


def traced() -> bool:
    """Whether an SDK is set up; asked once a turn, because it reads the environment."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def turn_span(agent: str, session_key: str) -> AbstractContextManager[Span]:
    """A whole turn."""
    return _span("invoke_agent", agent, {named.AGENT: agent, named.CONVERSATION: session_key})


def call_span(model: str) -> AbstractContextManager[Span]:
    """One model call, `model` being `provider:model`."""
    provider, _, name = model.partition(":")
    attributes = {named.PROVIDER: provider, named.REQUEST_MODEL: name or provider}
    return _span("chat", name or provider, attributes, SpanKind.CLIENT)


def tool_span(name: str, call_id: str) -> AbstractContextManager[Span]:
    """One tool call."""
    attributes = {named.TOOL: name, named.TOOL_CALL: call_id, named.TOOL_TYPE: "function"}
    return _span("execute_tool", name, attributes)


UNTRACED = nullcontext(trace.INVALID_SPAN)
"""In place of a span if nothing is recorded."""


def record_answer(span: Span, outcome: AssistantMessage | ModelError) -> None:
    """Record a model call's outcome; input tokens include cached ones, as the conventions say."""
    if not span.is_recording():
        return
    if isinstance(outcome, ModelError):
        _failed(span, outcome.kind, outcome.message)
        return
    span.set_attributes(
        {
            named.RESPONSE_MODEL: outcome.model,
            named.FINISH_REASONS: [outcome.stop_reason],
            named.INPUT_TOKENS: outcome.usage.sent,
            named.OUTPUT_TOKENS: outcome.usage.output or 0,
            named.CACHE_READ_TOKENS: outcome.usage.cache_read or 0,
            named.CACHE_CREATION_TOKENS: outcome.usage.cache_write or 0,
        }
    )


def record_totals(messages: Sequence[Message]) -> None:
    """The tokens of all the answers of the turn whose span is the current one."""
    if (span := trace.get_current_span()).is_recording():
        usages = [message.usage for message in messages if isinstance(message, AssistantMessage)]
        span.set_attribute(named.INPUT_TOKENS, sum(usage.sent for usage in usages))
        span.set_attribute(named.OUTPUT_TOKENS, sum(usage.output or 0 for usage in usages))


def record_content(
    span: Span, request: ModelRequest, outcome: AssistantMessage | ModelError, environ: Mapping[str, str]
) -> None:
    """Record prompt and answer, if the environment opts in."""
    choice = environ.get(named.CAPTURES_CONTENT, "").casefold()
    if not span.is_recording() or choice not in {"true", "span_only", "span_and_event"}:
        return
    span.set_attribute(named.SYSTEM_INSTRUCTIONS, _json([{"type": "text", "content": request.system}]))
    span.set_attribute(named.INPUT_MESSAGES, _json(map(_spoken, request.messages)))
    if isinstance(outcome, AssistantMessage):
        spoken = {**_spoken(outcome), "finish_reason": outcome.stop_reason}
        span.set_attribute(named.OUTPUT_MESSAGES, _json([spoken]))


def _spoken(message: Message) -> dict[str, Any]:
    if isinstance(message, ToolResult):
        response = {"type": "tool_call_response", "id": message.call_id, "response": message.text}
        return {"role": "tool", "parts": [response]}
    role = "assistant" if isinstance(message, AssistantMessage) else "user"
    return {"role": role, "parts": [*_parts(message.content)]}


def _parts(content: Sequence[Any]) -> Iterator[dict[str, Any]]:
    for part in content:
        match part:
            case Text(text):
                yield {"type": "text", "content": text}
            case Thinking(text):
                yield {"type": "reasoning", "content": text}
            case ToolCall(id, name, args):
                yield {"type": "tool_call", "id": id, "name": name, "arguments": args}
            case _:
                yield {"type": type(part).__name__.lower()}


def _json(value: Any) -> str:
    return msgspec.json.encode(list(value)).decode()


def record_result(span: Span, result: ToolResult) -> None:
    """Record a tool call's outcome."""
    if result.is_error and span.is_recording():
        _failed(span, "tool_error", result.text[:200])


def _failed(span: Span, kind: str, message: str) -> None:
    span.set_attribute(named.ERROR, kind)
    span.set_status(Status(StatusCode.ERROR, message))


def _span(
    operation: str, subject: str, attributes: dict[str, str], kind: SpanKind = SpanKind.INTERNAL
) -> AbstractContextManager[Span]:
    tracer = trace.get_tracer("denizen")
    attributes = {named.OPERATION: operation, **attributes}
    return tracer.start_as_current_span(f"{operation} {subject}", kind=kind, attributes=attributes)
