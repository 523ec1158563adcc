"""Traces by the conventions for generative AI."""

import json
from dataclasses import replace

import msgspec
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.engine.conftest import MakeAgent
from tests.engine.scene import call, say

from denizen import run_agent, tool
from denizen.errors import ModelError
from denizen.messages import Usage
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


async def test_the_span_of_a_turn_has_the_tokens_of_all_its_calls(
    agent_of: MakeAgent, spans: InMemorySpanExporter
) -> None:
    replies = (
        msgspec.structs.replace(call(("look", {})), usage=Usage(7, 3)),
        say("done", input=10, output=2, cache_read=90),
    )
    await run_agent("go", agent=agent_of(*replies, tools=[look]))
    [turn] = [span for span in spans.get_finished_spans() if span.name.startswith("invoke_agent")]
    assert turn.attributes
    assert turn.attributes["gen_ai.usage.input_tokens"] == 107
    assert turn.attributes["gen_ai.usage.output_tokens"] == 5


@pytest.mark.parametrize("choice", ["", "false", "true", "SPAN_ONLY"])
async def test_prompts_and_replies_are_in_spans_only_where_the_environment_wants_that(
    choice: str, agent_of: MakeAgent, spans: InMemorySpanExporter
) -> None:
    agent = agent_of(call(("look", {})), say("done"), tools=[look])
    environ = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": choice}
    agent.record = replace(agent.record, environ=environ)
    await run_agent("the secret plan", agent=agent)
    last = [span.attributes or {} for span in spans.get_finished_spans() if span.name.startswith("chat")][-1]
    names = {"gen_ai.system_instructions", "gen_ai.input.messages", "gen_ai.output.messages"}
    if choice in {"", "false"}:
        assert not names & last.keys()
        return
    asked, called, found = json.loads(str(last["gen_ai.input.messages"]))
    assert asked["role"] == "user"
    assert asked["parts"][0] == {"type": "text", "content": "the secret plan"}
    assert called["parts"][-1]["name"] == "look"
    assert (found["role"], found["parts"][0]["response"]) == ("tool", "seen")
    [answer] = json.loads(str(last["gen_ai.output.messages"]))
    assert answer == {"role": "assistant", "parts": [{"type": "text", "content": "done"}], "finish_reason": "end"}
    assert "Denizen" in str(last["gen_ai.system_instructions"])


async def test_a_failed_call_is_a_failed_span(agent_of: MakeAgent, spans: InMemorySpanExporter) -> None:
    with pytest.raises(ModelError):
        await run_agent("go", agent=agent_of(ModelError("gone", kind="unknown", status=404)))
    failed = next(span for span in spans.get_finished_spans() if span.name.startswith("chat"))
    assert failed.attributes
    assert failed.attributes["error.type"] == "unknown"
