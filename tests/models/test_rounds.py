"""A round of tools that another model began: what a model refuses of it is left out or written so that it is taken."""

from typing import Any

import pytest
from tests.models.calls import answer, call, request

from denizen.messages import AssistantMessage, Text, Thinking, ToolCall, ToolResult, UserMessage
from denizen.models.anthropic import AnthropicModel
from denizen.models.openai import OpenAIModel
from denizen.models.providers import PROVIDERS
from denizen.models.responses import ResponsesModel
from denizen.models.wire import WireModel
from denizen.testing import LoopbackAnthropic, LoopbackOpenAI, LoopbackResponses
from denizen.testing.loopback import LoopbackServer

ASK, MORE = UserMessage([Text("Look.")], "m1"), UserMessage([Text("And now?")], "m2")
CALL, RESULT = ToolCall("c1", "read", {"path": "a"}), ToolResult("c1", "read", [Text("x")])
FOREIGN = AssistantMessage([CALL], "openai:gpt-5")


async def sent(server: LoopbackServer, model: WireModel, *messages: Any) -> Any:
    server.say("ok")
    answer(await call(model, request(*messages, reasoning="low")))
    return server.requests[-1].json


def claude(server: LoopbackAnthropic, model: str = "claude-sonnet-4-5") -> AnthropicModel:
    return AnthropicModel(model, base_url=server.base_url)


async def test_claude_thinks_again_once_the_round_that_another_model_began_is_over(
    loopback_anthropic: LoopbackAnthropic,
) -> None:
    amid = await sent(loopback_anthropic, claude(loopback_anthropic), ASK, FOREIGN, RESULT)
    after = await sent(loopback_anthropic, claude(loopback_anthropic), ASK, FOREIGN, RESULT, MORE)
    assert "thinking" not in amid
    assert after["thinking"]["type"] == "enabled"


async def test_claude_goes_on_thinking_in_a_round_that_it_began_with_thoughts(
    loopback_anthropic: LoopbackAnthropic,
) -> None:
    own = AssistantMessage([Thinking("Hm.", "signed"), CALL], "anthropic:claude-sonnet-4-5")
    assert "thinking" in await sent(loopback_anthropic, claude(loopback_anthropic), ASK, own, RESULT)


async def test_claude_that_thinks_adaptively_needs_no_thoughts_first(loopback_anthropic: LoopbackAnthropic) -> None:
    body = await sent(loopback_anthropic, claude(loopback_anthropic, "claude-opus-4-6"), ASK, FOREIGN, RESULT)
    assert body["thinking"]["type"] == "adaptive"


async def test_deepseek_does_not_think_in_a_round_that_another_model_began(loopback_openai: LoopbackOpenAI) -> None:
    model = OpenAIModel("deepseek-chat", PROVIDERS["deepseek"], base_url=loopback_openai.base_url)
    body = await sent(loopback_openai, model, ASK, FOREIGN, RESULT)
    assert body["thinking"] == {"type": "disabled"}


@pytest.mark.parametrize("id", ["x" * 41, "call_" + "thought-signature" * 500])
async def test_ids_of_another_provider_are_as_short_as_a_provider_takes_them(
    id: str,
    loopback_openai: LoopbackOpenAI,
    loopback_responses: LoopbackResponses,
) -> None:
    round_ = (ASK, AssistantMessage([ToolCall(id, "read", {})], "google:g"), ToolResult(id, "read", [Text("x")]))
    chat = await sent(loopback_openai, OpenAIModel("m", base_url=loopback_openai.base_url), *round_)
    (called,), answered = chat["messages"][1]["tool_calls"], chat["messages"][2]
    assert called["id"] == answered["tool_call_id"]
    assert len(called["id"]) <= 40
    responses = await sent(loopback_responses, ResponsesModel("m", base_url=loopback_responses.base_url), *round_)
    first, second = responses["input"][-2:]
    assert first["call_id"] == second["call_id"]
    assert len(first["call_id"]) <= 64
