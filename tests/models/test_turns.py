"""Whole turns over real HTTP: what providers gave comes back to them unchanged, also after a restart."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from denizen import Agent, RunResult, run_agent, tool
from denizen.config import Config
from denizen.config.settings import AgentSettings, AuthProfileSettings, BudgetSettings, ProviderSettings
from denizen.events import Retry, RunEvent, Withdrawn
from denizen.messages import AssistantMessage, AssistantPart, Opaque, Text, Thinking, ToolCall, Usage
from denizen.ports import Traits
from denizen.testing import FakeClock, LoopbackAnthropic, LoopbackOpenAI, Step
from denizen.testing.loopback import LoopbackServer

Ask = Callable[..., Any]


@tool(traits=Traits.READS | Traits.REPEATABLE)
def look(at: str = "") -> str:
    """Look at something."""
    return f"seen {at}"


@pytest.fixture(params=[True, False], ids=["streamed", "in one piece"])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Ask:
    """Asks the model behind a server in a session that goes on; each time as after a restart."""

    async def ask(server: LoopbackServer, model: str, **settings: Any) -> RunResult:
        config = config_of(server, model, tmp_path, **settings)
        shown: list[RunEvent] = []
        async with Agent(config, tools=[look], clock=FakeClock()) as agent:
            result = await run_agent(
                "Go on", session_key="work", agent=agent, on_event=shown.append if request.param else None
            )
        assert all(each.json["stream"] is request.param for each in server.requests)
        return result

    return ask


def config_of(server: LoopbackServer, model: str, home: Path, **settings: Any) -> Config:
    keys = [AuthProfileSettings(id="main", api_key="a-long-enough-key")]
    provider = ProviderSettings(base_url=server.base_url, auth_profiles=keys)
    own = AgentSettings(workspace_dir=home / "workspace")
    return Config(model=model, home=home, agent=own, providers={model.partition(":")[0]: provider}, **settings)


THOUGHT = [Thinking("Two lamps, é.", "c2lnbmF0dXJl"), Opaque("anthropic", {"type": "redacted_thinking", "data": "x=="})]
SEARCHED = [
    Opaque("anthropic", {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": None}}),
    Opaque("anthropic", {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"page_age": None}]}),
]
CITED = [Text("I look."), Opaque("anthropic", {"citations": [{"type": "char_location", "cited_text": "lamp"}]})]
CALLS = [ToolCall("t1", "look", {"at": "a"}), ToolCall("t2", "look", {"at": "b"})]


async def test_every_block_of_anthropic_comes_back_unchanged(loopback_anthropic: LoopbackAnthropic, ask: Ask) -> None:
    said = AssistantMessage([*THOUGHT, *SEARCHED, *CITED, *CALLS], stop_reason="tool_calls")
    loopback_anthropic.say(said, "Done.", "And done.")
    for _ in range(2):
        await ask(loopback_anthropic, "anthropic:claude-sonnet-4-5")
    blocks = json.loads(loopback_anthropic.wire.whole(said))["content"]
    _, second, third = (received.json["messages"] for received in loopback_anthropic.requests)
    assert second[1] == {"role": "assistant", "content": blocks}
    assert [block["tool_use_id"] for block in second[2]["content"]] == ["t1", "t2"]
    assert third[1]["content"] == blocks
    assert all(received.body.count(b'"cache_control"') <= 4 for received in loopback_anthropic.requests)


@pytest.mark.parametrize(
    ("model", "extra"),
    [
        ("openrouter:x", Opaque("openrouter", {"reasoning_details": [{"type": "reasoning.encrypted", "data": "x=="}]})),
        ("gemini:x", Opaque("gemini", {"extra_content": {"google": {"thought_signature": "x=="}}})),
    ],
)
async def test_what_openai_s_likes_add_comes_back_unchanged(
    loopback_openai: LoopbackOpenAI, ask: Ask, model: str, extra: Opaque
) -> None:
    content: list[AssistantPart] = [CALLS[0], extra, CALLS[1]] if model.startswith("gemini") else [extra, *CALLS]
    loopback_openai.say(AssistantMessage(content, stop_reason="tool_calls"), "Done.", "And done.")
    for _ in range(2):
        await ask(loopback_openai, model)
    for received in loopback_openai.requests[1:]:
        answer = next(each for each in received.json["messages"] if each["role"] == "assistant")
        carrier = answer["tool_calls"][0] if model.startswith("gemini") else answer
        assert {name: carrier[name] for name in extra.data} == extra.data
        assert [call["id"] for call in answer["tool_calls"]] == ["t1", "t2"]


async def test_what_died_is_withdrawn_and_its_retry_counted(
    loopback_anthropic: LoopbackAnthropic, tmp_path: Path
) -> None:
    begun = loopback_anthropic.wire.streamed(AssistantMessage([Text("Two lamps and more")]))
    loopback_anthropic.send(*begun[:5], Step.HANG_UP)
    loopback_anthropic.say("Two lamps.")
    shown: list[RunEvent] = []
    config = config_of(loopback_anthropic, "anthropic:claude-sonnet-4-5", tmp_path)
    async with Agent(config, clock=FakeClock()) as agent:
        result = await run_agent("How many?", agent=agent, on_event=shown.append)
    assert (result.reply, result.retries) == ("Two lamps.", 1)
    assert [each.reason for each in shown if isinstance(each, Retry)] == ["timeout"]
    assert [each.text for each in shown if isinstance(each, Withdrawn)] == ["Two lamps"]
    assert len(result.messages) == 2


async def test_day_s_budget_holds_for_sessions_at_once(loopback_anthropic: LoopbackAnthropic, tmp_path: Path) -> None:
    dear = AssistantMessage([ToolCall("t1", "look", {})], usage=Usage(0, 100_000), stop_reason="tool_calls")  # $1.50
    loopback_anthropic.say(*[dear] * 40)
    budget = BudgetSettings(day_usd=6.0)
    config = config_of(loopback_anthropic, "anthropic:claude-sonnet-4-5", tmp_path, budget=budget)
    async with Agent(config, tools=[look], clock=FakeClock()) as agent:
        turns = [run_agent("Go", agent=agent, session_key=f"s{number}") for number in range(4)]
        results = await asyncio.gather(*turns)
    assert {result.stop_reason for result in results} == {"budget"}
    assert sum(result.usage.cost_usd or 0 for result in results) <= 6.0 + 4 * 1.5
