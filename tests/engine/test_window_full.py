"""Windows that are full amid an answer, and answers that a model can't give that long."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.scene import Host, call, say

from denizen import Agent, run_agent, tool
from denizen.config import Config
from denizen.config.settings import AgentSettings, AuthProfileSettings, ProviderSettings
from denizen.events import Compacted, Notice
from denizen.ports import Traits
from denizen.testing import LoopbackAnthropic, LoopbackOpenAI
from denizen.testing.loopback import LoopbackServer


@tool(traits=Traits.READS | Traits.REPEATABLE)
def read(size: int = 30_000) -> str:
    """Read."""
    return "word " * (size // 5)


@pytest.fixture
def openai() -> Iterator[LoopbackOpenAI]:
    with LoopbackOpenAI() as server:
        yield server


@pytest.fixture
def anthropic() -> Iterator[LoopbackAnthropic]:
    with LoopbackAnthropic() as server:
        yield server


def agent_at(server: LoopbackServer, model: str, tmp_path: Path) -> Agent:
    provider = model.partition(":")[0]
    way = ProviderSettings(base_url=server.base_url, auth_profiles=[AuthProfileSettings(id="me", api_key="k")])
    settings = AgentSettings(workspace_dir=tmp_path / "workspace", max_retries=0)
    config = Config(
        model=model, providers={provider: way}, agent=settings, home=tmp_path, workspace=tmp_path / "workspace"
    )
    return Agent(config, tools=[read], environ={})


def events(*data: Any) -> list[bytes]:
    return [b"data: %s\n\n" % json.dumps(each).encode() for each in data]


BEGUN = {"choices": [{"index": 0, "delta": {"content": "I was say"}}]}
FULL = {
    "lmstudio": [{"error": {"message": "Context size has been exceeded.", "type": "server_error"}}],
    "llamacpp": [{"error": {"code": 500, "message": "context shift is disabled", "type": "server_error"}}],
    "zai": [{"choices": [{"index": 0, "delta": {}, "finish_reason": "model_context_window_exceeded"}]}],
}


@pytest.mark.parametrize("how", FULL)
async def test_window_that_is_full_amid_an_answer_is_relieved(
    tmp_path: Path, openai: LoopbackOpenAI, host: Host, how: str
) -> None:
    openai.say(call(("read", {})))
    openai.send(*events(BEGUN, *FULL[how]))
    openai.say(say("I was saying this."))
    async with agent_at(openai, f"{how}:m", tmp_path) as agent:
        result = await run_agent("Read it.", agent=agent, io=host)
    assert result.reply == "I was saying this."
    assert len(host.of(Compacted)) == 1


async def test_claudes_full_window_is_relieved_and_not_blamed_on_max_tokens(
    tmp_path: Path, anthropic: LoopbackAnthropic, host: Host
) -> None:
    stop = {"stop_reason": "model_context_window_exceeded"}
    anthropic.say(call(("read", {})))
    anthropic.send(
        *events(
            {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 9}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I was say"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 3}},
            {"type": "message_stop"},
        )
    )
    anthropic.say(say("I was saying this."))
    async with agent_at(anthropic, "anthropic:claude-sonnet-4-5", tmp_path) as agent:
        result = await run_agent("Read it.", agent=agent, io=host)
    assert result.reply == "I was saying this."
    assert len(host.of(Compacted)) == 1
    assert not any("agent.max_tokens" in notice.text for notice in host.of(Notice))


async def test_no_model_is_asked_for_more_than_it_can_answer(tmp_path: Path, anthropic: LoopbackAnthropic) -> None:
    anthropic.say("Hello.")
    async with agent_at(anthropic, "anthropic:claude-3-opus-20240229", tmp_path) as agent:
        await run_agent("Hello?", agent=agent)
    assert anthropic.requests[0].json["max_tokens"] == 4096


async def test_longest_answer_that_a_refusal_names_is_learnt(tmp_path: Path, openai: LoopbackOpenAI) -> None:
    openai.fail(400, "max_tokens is too large: 8192. This model supports at most 4096 completion tokens.")
    openai.say("Hello.", "And again.")
    async with agent_at(openai, "office:m", tmp_path) as agent:
        assert (await run_agent("Hello?", agent=agent)).reply == "Hello."
        assert (await run_agent("Hello?", agent=agent)).reply == "And again."
    assert [request.json["max_tokens"] for request in openai.requests] == [8192, 4096, 4096]
