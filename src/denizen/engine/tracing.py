"""Traces through the OpenTelemetry API, by its conventions for generative AI: one span per turn, model call and tool.

Where no SDK is set up nothing is recorded and nothing is paid.
"""

from contextlib import AbstractContextManager, nullcontext

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from denizen.errors import ModelError
from denizen.messages import AssistantMessage, ToolResult


def traced() -> bool:
    """Whether an SDK is set up; asked once a turn, as the answer takes a look at the environment."""
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def turn_span(agent: str, session_key: str) -> AbstractContextManager[Span]:
    """A whole turn."""
    return _span("invoke_agent", agent, {"gen_ai.agent.name": agent, "gen_ai.conversation.id": session_key})


def call_span(model: str) -> AbstractContextManager[Span]:
    """One model call, `model` being `provider:model`."""
    provider, _, name = model.partition(":")
    attributes = {"gen_ai.provider.name": provider, "gen_ai.request.model": name or provider}
    return _span("chat", name or provider, attributes, SpanKind.CLIENT)


def tool_span(name: str, call_id: str) -> AbstractContextManager[Span]:
    """One tool call."""
    attributes = {"gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id, "gen_ai.tool.type": "function"}
    return _span("execute_tool", name, attributes)


UNTRACED = nullcontext(trace.INVALID_SPAN)
"""In place of a span where nothing is recorded."""


def record_answer(span: Span, outcome: AssistantMessage | ModelError) -> None:
    """What came of a model call; input tokens include the cached ones, as the conventions ask."""
    if not span.is_recording():
        return
    if isinstance(outcome, ModelError):
        _failed(span, outcome.kind, outcome.message)
        return
    usage = outcome.usage
    span.set_attributes(
        {
            "gen_ai.response.model": outcome.model,
            "gen_ai.response.finish_reasons": [outcome.stop_reason],
            "gen_ai.usage.input_tokens": usage.context - (usage.output or 0),
            "gen_ai.usage.output_tokens": usage.output or 0,
            "gen_ai.usage.cache_read.input_tokens": usage.cache_read or 0,
            "gen_ai.usage.cache_creation.input_tokens": usage.cache_write or 0,
        }
    )


def record_result(span: Span, result: ToolResult) -> None:
    """What came of a tool call."""
    if result.is_error and span.is_recording():
        _failed(span, "tool_error", result.text[:200])


def _failed(span: Span, kind: str, message: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, message))


def _span(
    operation: str, subject: str, attributes: dict[str, str], kind: SpanKind = SpanKind.INTERNAL
) -> AbstractContextManager[Span]:
    tracer = trace.get_tracer("denizen")
    attributes = {"gen_ai.operation.name": operation, **attributes}
    return tracer.start_as_current_span(f"{operation} {subject}", kind=kind, attributes=attributes)
