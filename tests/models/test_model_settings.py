"""Settings of one model or one provider, and how much a model thinks."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from denizen import Agent, load_config, run_agent, tool
from denizen.messages import AssistantMessage, Opaque, Text, Usage
from denizen.ports import Traits
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


THINKS = {"type": "adaptive", "display": "summarized"}
CLAUDES: list[tuple[str, str | int | None, Mapping[str, Any]]] = [
    ("claude-sonnet-4-5", "medium", {"thinking": {"type": "enabled", "budget_tokens": 8_192}}),
    ("claude-sonnet-4-5", 4_000, {"thinking": {"type": "enabled", "budget_tokens": 4_000}}),
    ("claude-sonnet-4-5", "none", {}),
    ("claude-sonnet-5-5", "high", {"thinking": THINKS, "output_config": {"effort": "high"}}),
    ("claude-sonnet-5-5", None, {"thinking": THINKS}),
    ("claude-sonnet-5-5", "none", {"thinking": {"type": "between_tools"}}),
    ("claude-sonnet-5", "none", {"thinking": {"type": "disabled"}}),
    ("claude-opus-5-20260701", "none", {"thinking": {"type": "disabled"}}),
    ("claude-haiku-5-5", "none", {"thinking": {"type": "disabled"}}),
    ("claude-opus-5-5", "none", {"output_config": {"effort": "low"}}),
    ("claude-fable-5-1", "none", {"output_config": {"effort": "low"}}),
    ("claude-sonnet-4-5", None, {}),
    ("claude-sonnet-4-6", None, {}),
    ("claude-sonnet-4-6", "none", {}),
    ("claude-opus-4-7", 2_000, {"thinking": THINKS, "output_config": {"effort": "low"}}),
    ("claude-3-opus-20240229", "high", {}),
]


@pytest.mark.parametrize(("model", "wish", "fields"), CLAUDES)
async def test_reasoning_is_sent_as_each_claude_wants_it(
    tmp_path: Path, anthropic: LoopbackAnthropic, model: str, wish: str | int | None, fields: Mapping[str, Any]
) -> None:
    wished = {} if wish is None else {"reasoning": wish}
    body = await sent(tmp_path, f"anthropic:{model}", anthropic, agent={**wished, "temperature": 0.5})
    assert {name: body[name] for name in FIELDS if name in body} == fields
    assert ("temperature" in body) == (not fields)
    assert body["max_tokens"] > body.get("thinking", {}).get("budget_tokens", 0) + 1_000


@pytest.mark.parametrize(
    ("model", "taken"),
    [
        ("claude-sonnet-5-5", set()),
        ("claude-opus-4-7", set()),
        ("claude-fable-5", set()),
        ("claude-opus-4-6", {"temperature", "top_p", "top_k"}),
        ("claude-sonnet-4-20250514", {"temperature", "top_p", "top_k"}),
    ],
)
async def test_claude_that_samples_by_itself_is_not_told_how(
    tmp_path: Path, anthropic: LoopbackAnthropic, model: str, taken: set[str]
) -> None:
    told = {"temperature": 0.5, "top_p": 0.9, "top_k": 5}
    body = await sent(tmp_path, f"anthropic:{model}", anthropic, agent=told)
    assert told.keys() & body.keys() == taken


@pytest.mark.parametrize(
    ("model", "wished", "limit"),
    [
        ("claude-sonnet-5-5", {}, 1_000 + 24_576),
        ("claude-opus-5-5", {"reasoning": "none"}, 1_000 + 2_048),
        ("claude-sonnet-4-6", {}, 1_000),
    ],
)
async def test_thoughts_that_nobody_asked_for_have_room(
    tmp_path: Path, anthropic: LoopbackAnthropic, model: str, wished: Mapping[str, Any], limit: int
) -> None:
    body = await sent(tmp_path, f"anthropic:{model}", anthropic, agent={"max_tokens": 1_000, **wished})
    assert body["max_tokens"] == limit


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


# Anthropic's own

CLAUDE = "anthropic:claude-sonnet-4-5"


@tool(traits=Traits.READS)
def web_search(query: str) -> str:
    """Search the web."""
    return query


async def test_prompts_are_kept_for_an_hour_where_that_is_set(tmp_path: Path, anthropic: LoopbackAnthropic) -> None:
    hour = {"type": "ephemeral", "ttl": "1h"}
    anthropic.say(AssistantMessage([Text("ok")], usage=Usage(1_000, 100, cache_write=10_000)))
    overrides = {
        "model": CLAUDE,
        "providers": {"anthropic": reached_at(anthropic)},
        "models": {CLAUDE: {"cache_life": "1h"}},
    }
    config = load_config(home=tmp_path, environ={}, cwd=tmp_path, overrides=overrides)
    async with Agent(config, tools=[web_search], environ={}) as agent:
        result = await run_agent("Hello?", agent=agent)
    [request] = anthropic.requests
    marked = [request.json["system"][-1], request.json["tools"][-1], request.json["messages"][-1]["content"][-1]]
    assert [block["cache_control"] for block in marked] == [hour] * 3
    assert result.usage.cost_usd == pytest.approx((1_000 * 3 + 100 * 15 + 10_000 * 6) / 1e6)


async def test_prompts_of_claude_elsewhere_are_kept_for_an_hour_too(tmp_path: Path, openai: LoopbackOpenAI) -> None:
    name = "openrouter:anthropic/claude-sonnet-4.5"
    body = await sent(tmp_path, name, openai, models={name: {"cache_life": "1h"}})
    assert body["cache_control"] == {"type": "ephemeral", "ttl": "1h"}


async def test_betas_are_named_for_their_model_alone(tmp_path: Path, anthropic: LoopbackAnthropic) -> None:
    betas = ["context-1m-2025-08-07", "interleaved-thinking-2025-05-14"]
    windows: dict[str, int] = {}
    for name in (CLAUDE, "anthropic:claude-haiku-4-5"):
        anthropic.say("ok")
        overrides = {
            "model": name,
            "providers": {"anthropic": reached_at(anthropic)},
            "models": {CLAUDE: {"betas": betas}},
        }
        config = load_config(home=tmp_path, environ={}, cwd=tmp_path, overrides=overrides)
        async with Agent(config, tools=[], environ={}) as agent:
            await run_agent("Hello?", agent=agent)
            windows[name] = agent.model.limits().window
    first, second = anthropic.requests
    assert first.headers["anthropic-beta"] == ",".join(betas)
    assert "anthropic-beta" not in second.headers
    assert [*windows.values()] == [1_000_000, 200_000]


async def test_the_providers_own_tools_go_along_and_replace_ours_of_that_name(
    tmp_path: Path, anthropic: LoopbackAnthropic
) -> None:
    own = [
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "code_execution_20250825", "name": "code_execution"},
    ]
    searched = [
        Opaque("anthropic", {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "lamps"}}),
        Opaque("anthropic", {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}),
    ]
    anthropic.say(AssistantMessage([*searched, Text("Two.")]), "Yes.")
    overrides = {
        "model": CLAUDE,
        "providers": {"anthropic": reached_at(anthropic)},
        "models": {CLAUDE: {"extra_body": {"tools": own}}},
    }
    config = load_config(home=tmp_path, environ={}, cwd=tmp_path, overrides=overrides)
    async with Agent(config, tools=[web_search], environ={}) as agent:
        assert (await run_agent("How many lamps?", session_key="work", agent=agent)).reply == "Two."
        assert (await run_agent("Sure?", session_key="work", agent=agent)).reply == "Yes."
    first, second = (request.json for request in anthropic.requests)
    assert [tool["type"] for tool in first["tools"]] == ["web_search_20250305", "code_execution_20250825"]
    assert "cache_control" in first["tools"][-1]
    assert second["messages"][1]["content"][:2] == [part.data for part in searched]
