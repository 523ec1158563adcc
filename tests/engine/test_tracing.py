"""Traces by the conventions for generative AI."""

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.engine.conftest import MakeAgent
from tests.engine.scene import call, say

from denizen import run_agent, tool
from denizen.errors import ModelError
from denizen.ports import Traits


@tool(traits=Traits.READS | Traits.REPEATABLE)
def look() -> str:
    """Look."""
    return "seen"


async def test_a_turn_its_calls_and_its_tools_are_spans(agent_of: MakeAgent, spans: InMemorySpanExporter) -> None:
    agent = agent_of(call(("look", {})), say("done", input=10, output=2, cache_read=90), tools=[look])
    await run_agent("go", agent=agent)
    told = {span.name: span for span in spans.get_finished_spans()}
    assert {name.split()[0] for name in told} == {"invoke_agent", "chat", "execute_tool"}
    turn = told["invoke_agent assistant"]
    assert turn.context
    children = [span for span in told.values() if span is not turn]
    assert all(span.parent and span.parent.span_id == turn.context.span_id for span in children)
    answer = next(span for span in told.values() if span.name.startswith("chat"))
    assert answer.attributes
    assert answer.attributes["gen_ai.usage.input_tokens"] == 100
    assert answer.attributes["gen_ai.usage.output_tokens"] == 2


async def test_a_failed_call_is_a_failed_span(agent_of: MakeAgent, spans: InMemorySpanExporter) -> None:
    with pytest.raises(ModelError):
        await run_agent("go", agent=agent_of(ModelError("gone", kind="unknown", status=404)))
    failed = next(span for span in spans.get_finished_spans() if span.name.startswith("chat"))
    assert failed.attributes
    assert failed.attributes["error.type"] == "unknown"
