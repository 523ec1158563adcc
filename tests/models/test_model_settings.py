"""Settings of one model or one provider, and how much a model thinks."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from denizen import Agent, load_config, run_agent
from denizen.messages import AssistantMessage, Text, Usage
from denizen.testing import LoopbackAnthropic, LoopbackOpenAI
from denizen.testing.loopback import LoopbackServer


@pytest.fixture
def openai() -> Iterator[LoopbackOpenAI]:
    with LoopbackOpenAI() as server:
        yield server


@pytest.fixture
def anthropic() -> Iterator[LoopbackAnthropic]:
    with LoopbackAnthropic() as server:
        yield server


def reached_at(server: LoopbackServer, **settings: Any) -> dict[str, Any]:
    return {"base_url": server.base_url, "auth_profiles": [{"id": "a", "api_key": "key"}], **settings}


async def sent(tmp_path: Path, model: str, server: LoopbackServer, **settings: Any) -> Any:
    """The body that the server gets."""
    server.say("ok")
    overrides = {"model": model, "providers": {model.partition(":")[0]: reached_at(server)}, **settings}
    config = load_config(home=tmp_path, environ={}, cwd=tmp_path, overrides=overrides)
    async with Agent(config, tools=[], environ={}) as agent:
        await run_agent("Hello?", agent=agent)
    return server.requests[-1].json


async def test_what_one_provider_wants_does_not_reach_the_next(
    tmp_path: Path, anthropic: LoopbackAnthropic, openai: LoopbackOpenAI
) -> None:
    anthropic.fail(401, "invalid x-api-key")
    openai.say("ok")
    thinking = {"type": "enabled", "budget_tokens": 2048}
    overrides = {
        "model": "anthropic:claude-sonnet-4-5",
        "fallback_models": ["openai:gpt-5-mini"],
        "providers": {"anthropic": reached_at(anthropic, top_k=5), "openai": reached_at(openai)},
        "models": {"anthropic:claude-sonnet-4-5": {"extra_body": {"thinking": thinking}}},
    }
    config = load_config(home=tmp_path, environ={}, cwd=tmp_path, overrides=overrides)
    async with Agent(config, tools=[], environ={}) as agent:
        assert (await run_agent("Hello?", agent=agent)).reply == "ok"
    [first], [second] = anthropic.requests, openai.requests
    assert (first.json["thinking"], first.json["top_k"]) == (thinking, 5)
    assert not {"thinking", "top_k"} & second.json.keys()


async def test_settings_of_a_model_count_over_its_providers_and_these_over_the_agents(
    tmp_path: Path, openai: LoopbackOpenAI
) -> None:
    body = await sent(
        tmp_path,
        "openai:m",
        openai,
        agent={"temperature": 0.1, "top_p": 0.1, "seed": 1, "max_tokens": 100, "extra_body": {"a": 1, "b": 1}},
        providers={"openai": reached_at(openai, top_p=0.2, seed=2, max_tokens=200, extra_body={"b": 2, "c": 2})},
        models={"openai:m": {"seed": 3, "extra_body": {"c": 3}}},
    )
    assert (body["temperature"], body["top_p"], body["seed"]) == (0.1, 0.2, 3)
    assert (body["a"], body["b"], body["c"]) == (1, 2, 3)
    assert body["max_completion_tokens"] == 200


async def test_window_and_prices_of_a_model_can_be_set(tmp_path: Path, openai: LoopbackOpenAI) -> None:
    openai.say(AssistantMessage([Text("ok")], usage=Usage(1_000, 100)))
    prices = {"input": 2.0, "output": 10.0}
    overrides = {
        "model": "office:m",
        "providers": {"office": reached_at(openai, context_window=50_000)},
        "models": {"office:m": {"context_window": 9_000, "prices": prices}},
    }
    config = load_config(home=tmp_path, environ={}, cwd=tmp_path, overrides=overrides)
    async with Agent(config, tools=[], environ={}) as agent:
        assert agent.model.limits().window == 9_000
        result = await run_agent("Hello?", agent=agent)
    assert result.usage.cost_usd == pytest.approx((1_000 * 2 + 100 * 10) / 1e6)


REASONING: list[tuple[str, str | int, Mapping[str, Any]]] = [
    ("openai:gpt-5-mini", "high", {"reasoning_effort": "high"}),
    ("openai:gpt-5-mini", "none", {"reasoning_effort": "minimal"}),
    ("openai:gpt-5.2", "none", {"reasoning_effort": "none"}),
    ("openai:o4-mini", "none", {"reasoning_effort": "low"}),
    ("openai:gpt-5-mini", 5_000, {"reasoning_effort": "medium"}),
    ("openai:gpt-4o", "high", {}),
    ("openrouter:x/y", "low", {"reasoning": {"effort": "low"}}),
    ("openrouter:x/y", 3_000, {"reasoning": {"max_tokens": 3_000}}),
    ("deepseek:deepseek-flash", "high", {"thinking": {"type": "enabled"}, "reasoning_effort": "high"}),
    ("deepseek:deepseek-flash", "none", {"thinking": {"type": "disabled"}}),
    ("gemini:gemini-flash-latest", "low", {"reasoning_effort": "low"}),
    ("mistral:mistral-medium-latest", "high", {"reasoning_effort": "high"}),
    ("xai:grok-4.7", "medium", {"reasoning_effort": "medium"}),
    ("xai:grok-code-fast-1", "medium", {}),
    ("groq:openai/gpt-oss-120b", "none", {"reasoning_effort": "low"}),
    ("groq:llama-3.3-70b-versatile", "high", {}),
    ("vllm:qwen3", "none", {"chat_template_kwargs": {"enable_thinking": False}}),
    ("llamacpp:m", "low", {"chat_template_kwargs": {"enable_thinking": True}, "reasoning_effort": "low"}),
    ("ollama:gpt-oss", "low", {"reasoning_effort": "low"}),
]
FIELDS = ("reasoning", "reasoning_effort", "thinking", "chat_template_kwargs", "output_config")


@pytest.mark.parametrize(("model", "wish", "fields"), REASONING)
async def test_reasoning_is_sent_as_each_provider_wants_it(
    tmp_path: Path, openai: LoopbackOpenAI, model: str, wish: str | int, fields: Mapping[str, Any]
) -> None:
    body = await sent(tmp_path, model, openai, agent={"reasoning": wish})
    assert {name: body[name] for name in FIELDS if name in body} == fields


CLAUDES: list[tuple[str, str | int, Mapping[str, Any]]] = [
    ("claude-sonnet-4-5", "medium", {"thinking": {"type": "enabled", "budget_tokens": 8_192}}),
    ("claude-sonnet-4-5", 4_000, {"thinking": {"type": "enabled", "budget_tokens": 4_000}}),
    ("claude-sonnet-4-5", "none", {}),
    ("claude-sonnet-5-5", "high", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
    ("claude-opus-4-7", 2_000, {"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}),
    ("claude-3-opus-20240229", "high", {}),
]


@pytest.mark.parametrize(("model", "wish", "fields"), CLAUDES)
async def test_reasoning_is_sent_as_each_claude_wants_it(
    tmp_path: Path, anthropic: LoopbackAnthropic, model: str, wish: str | int, fields: Mapping[str, Any]
) -> None:
    body = await sent(tmp_path, f"anthropic:{model}", anthropic, agent={"reasoning": wish, "temperature": 0.5})
    assert {name: body[name] for name in FIELDS if name in body} == fields
    assert ("temperature" in body) == (not fields)
    assert body["max_tokens"] > body.get("thinking", {}).get("budget_tokens", 0) + 1_000


async def test_thoughts_do_not_take_the_room_of_the_answer(tmp_path: Path, openai: LoopbackOpenAI) -> None:
    body = await sent(tmp_path, "openai:gpt-5", openai, agent={"reasoning": 3_000, "max_tokens": 1_000})
    assert body["max_completion_tokens"] == 4_000


async def test_reasoning_of_one_model_counts_over_the_agents(tmp_path: Path, openai: LoopbackOpenAI) -> None:
    models = {"openai:gpt-5": {"reasoning": "low"}}
    body = await sent(tmp_path, "openai:gpt-5", openai, agent={"reasoning": "high"}, models=models)
    assert body["reasoning_effort"] == "low"


def test_typos_in_reasoning_are_reported(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r'agent.reasoning: expected "none".*or an integer'):
        load_config(home=tmp_path, environ={}, cwd=tmp_path, overrides={"agent": {"reasoning": "hihg"}})
