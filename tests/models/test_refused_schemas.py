"""A schema that a provider refuses is asked for in words instead; others are still enforced."""

from pathlib import Path
from typing import Any

import pytest
from tests.models.calls import answer, call, failure, request

from denizen import Agent, load_config, run_agent
from denizen.errors import ModelError
from denizen.models.anthropic import AnthropicModel
from denizen.models.gemini import GeminiModel
from denizen.models.openai import OpenAIModel
from denizen.models.responses import ResponsesModel
from denizen.models.wire import WireModel
from denizen.testing import LoopbackAnthropic, LoopbackGemini, LoopbackOpenAI, LoopbackResponses
from denizen.testing.loopback import LoopbackServer

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["children"],
}
CITY: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

REFUSALS = [
    (LoopbackAnthropic, AnthropicModel, "claude-sonnet-4-5", "output_config.format.schema: Circular reference: #"),
    (LoopbackAnthropic, AnthropicModel, "claude-sonnet-4-5", "Schemas contain too many optional parameters (25)"),
    (LoopbackAnthropic, AnthropicModel, "claude-sonnet-4-5", "The compiled grammar is too large"),
    (LoopbackOpenAI, OpenAIModel, "gpt-5", "Invalid schema for response_format 'answer': In context=(), nested too"),
    (LoopbackResponses, ResponsesModel, "gpt-5", "Invalid schema for response_format 'answer': In context=(), it is"),
    (LoopbackGemini, GeminiModel, "gemini-3", "The specified schema produces a constraint that has too many states"),
    (LoopbackGemini, GeminiModel, "gemini-3", "Request contains an invalid argument."),
]


def is_enforced(server: LoopbackServer) -> list[bool]:
    words = (b"output_config", b"response_format", b'"format"', b"responseJsonSchema")
    return [any(word in each.body for word in words) for each in server.requests]


@pytest.mark.parametrize(("server_type", "model_type", "name", "words"), REFUSALS)
async def test_refused_schema_is_left_out_and_others_are_not(
    server_type: type[LoopbackServer], model_type: type[WireModel], name: str, words: str
) -> None:
    with server_type() as server:
        model = model_type(name, base_url=server.base_url)
        server.fail(400, words)
        server.say("one", "two", "three")
        for schema, text in ((TREE, "one"), (TREE, "two"), (CITY, "three")):
            assert answer(await call(model, request(output_schema=schema))).text == text
        assert is_enforced(server) == [True, False, False, True]


async def test_refusal_of_something_else_is_not_taken_for_one_of_the_schema(loopback_openai: LoopbackOpenAI) -> None:
    loopback_openai.fail(400, "Invalid value for 'temperature'")
    model = OpenAIModel("gpt-5", base_url=loopback_openai.base_url)
    assert "temperature" in failure(await call(model, request(output_schema=CITY))).message
    assert len(loopback_openai.requests) == 1


async def test_schema_refused_without_being_sent_ends_the_call(loopback_anthropic: LoopbackAnthropic) -> None:
    loopback_anthropic.fail(400, "tools.0.input_schema: Circular reference")
    model = AnthropicModel("claude-sonnet-4-5", base_url=loopback_anthropic.base_url)
    assert "Circular" in failure(await call(model)).message
    assert len(loopback_anthropic.requests) == 1


@pytest.mark.parametrize(
    "words",
    [
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129.",
        "tools[0].function_declarations: [FIELD_INVALID] At most 512 function declarations can be specified.",
        "'tools' : maximum number of items is 128",
    ],
)
async def test_more_tools_than_a_provider_takes_end_the_turn_with_what_to_do(
    words: str, loopback_openai: LoopbackOpenAI, tmp_path: Path
) -> None:
    loopback_openai.fail(400, words)
    provider = {"base_url": loopback_openai.base_url, "auth_profiles": [{"id": "a", "api_key": "key"}]}
    overrides = {"model": "openai:gpt-4.1", "providers": {"openai": provider}}
    config = load_config(home=tmp_path, environ={}, cwd=tmp_path, overrides=overrides)
    async with Agent(config, tools=[], environ={}) as agent:
        with pytest.raises(ModelError) as refused:
            await run_agent("Hello?", agent=agent)
    assert words.rstrip(".") in str(refused.value)
    assert "offer it fewer tools: agent.max_mcp_tools" in str(refused.value)
    assert len(loopback_openai.requests) == 1
