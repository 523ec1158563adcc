"""Servers whose window is smaller than anybody said: sessions go on there."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.engine.scene import call, say
from tests.engine.small_server import REFUSAL, SmallServer, serving

from denizen import Agent, run_agent, tool
from denizen.config import Config
from denizen.config.settings import AgentSettings, AuthProfileSettings, ProviderSettings
from denizen.messages import AssistantMessage
from denizen.ports import Traits

MakeAgent = Callable[..., Agent]


@tool(traits=Traits.READS | Traits.REPEATABLE)
def read(size: int = 39_000) -> str:
    """Read."""
    return "word " * (size // 5)


def agent_at(
    server: SmallServer,
    tmp_path: Path,
    *,
    provider: str = "office",
    profile: str = "assistant",
    actions: Literal["", "native"] = "",
    **settings: Any,
) -> Agent:
    way = ProviderSettings(
        base_url=server.base_url, auth_profiles=[AuthProfileSettings(id="me", api_key="k")], **settings
    )
    config = Config(
        model=f"{provider}:small",
        providers={provider: way},
        agent=AgentSettings(workspace_dir=tmp_path / "workspace", max_retries=0, actions=actions),
        home=tmp_path,
        workspace=tmp_path / "workspace",
    )
    return Agent(config, profile=profile, tools=[read], environ={})


READS = call(("read", {}), ("read", {}), ("read", {}))
ONE_BY_ONE = [call(("read", {})) for _ in range(3)]
REFUSALS = {
    "vllm": REFUSAL,
    "llamacpp": "request ({asked} tokens) exceeds the available context size ({window} tokens), try increasing it",
    "lmstudio": "The model is loaded with context length of only {window} tokens, which is not enough.",
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("reads", [[READS], ONE_BY_ONE], ids=["at once", "one by one"])
async def test_session_with_long_results_stays_usable(
    tmp_path: Path, reads: Sequence[AssistantMessage], refusal: str
) -> None:
    script = [*reads, say("Read."), say("Still here."), *ONE_BY_ONE, say("Again.")]
    with serving(SmallServer(16_384, script, refusal)) as server:
        async with agent_at(server, tmp_path) as agent:
            assert (await run_agent("Read all three.", session_key="work", agent=agent)).reply == "Read."
            assert (await run_agent("Are you there?", session_key="work", agent=agent)).reply == "Still here."
            assert (await run_agent("Once more.", session_key="work", agent=agent)).reply == "Again."
    assert server.refused <= 2


async def test_window_that_a_refusal_names_is_kept_for_later_agents(tmp_path: Path) -> None:
    with serving(SmallServer(16_384, [READS, say("Read."), say("Hello.")])) as server:
        async with agent_at(server, tmp_path) as agent:
            await run_agent("Read all three.", session_key="work", agent=agent)
        async with agent_at(server, tmp_path) as later:
            assert later.model.limits().window == 16_384


ANSWERS: dict[str, dict[str, Any]] = {
    "vllm": {"/v1/models": {"data": [{"id": "other"}, {"id": "small", "max_model_len": 16_384}]}},
    "llamacpp": {"/props": {"default_generation_settings": {"n_ctx": 16_384}, "total_slots": 1}},
    "lmstudio": {
        "/api/v0/models": {"data": [{"id": "small", "max_context_length": 131_072, "loaded_context_length": 16_384}]}
    },
    "ollama": {"/api/show": {"model_info": {"general.architecture": "llama", "llama.context_length": 16_384}}},
    "ollama, set": {
        "/api/show": {"parameters": 'stop "x"\nnum_ctx    16384', "model_info": {"llama.context_length": 131_072}}
    },
    "ollama, loaded": {
        "/api/ps": {"models": [{"name": "small:latest", "context_length": 16_384}]},
        "/api/show": {"model_info": {"llama.context_length": 131_072}},
    },
}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("way", ANSWERS)
async def test_server_is_asked_for_its_window_before_it_has_to_refuse(tmp_path: Path, way: str, *, named: bool) -> None:
    with serving(SmallServer(16_384, [READS, say("Read.")])) as server:
        server.facts = ANSWERS[way]
        async with agent_at(server, tmp_path, provider=way.partition(",")[0] if named else "office") as agent:
            assert (await run_agent("Read all three.", session_key="work", agent=agent)).reply == "Read."
    assert server.refused == 0


async def test_configured_window_counts_where_it_is_smaller_than_the_servers(tmp_path: Path) -> None:
    with serving(SmallServer(16_384, [])) as server:
        server.facts = ANSWERS["vllm"]
        async with agent_at(server, tmp_path, context_window=8_000) as agent:
            assert agent.model.limits().window == 8_000
        async with agent_at(server, tmp_path, context_window=32_000) as agent:
            assert agent.model.limits().window == 16_384


async def test_answer_is_asked_for_in_the_room_that_is_left(tmp_path: Path) -> None:
    with serving(SmallServer(16_384, [call(("read", {"size": 30_000})), say("Read.")])) as server:
        server.facts = ANSWERS["vllm"]
        async with agent_at(server, tmp_path) as agent:
            await run_agent("Read it.", session_key="work", agent=agent)
    first, second = server.requests
    assert first["max_tokens"] == 8192
    assert 1024 <= second["max_tokens"] < 8192


async def test_answer_longer_than_a_small_window_is_asked_for_again_in_its_room(tmp_path: Path) -> None:
    with serving(SmallServer(4_096, [say("Hello.")])) as server:
        async with agent_at(server, tmp_path) as agent:
            result = await run_agent("Hello?", session_key="work", agent=agent)
    assert (result.reply, result.retries, server.refused) == ("Hello.", 0, 1)


async def test_server_that_reports_few_tokens_for_ever_does_not_prevent_compaction(tmp_path: Path) -> None:
    from denizen.messages import Usage

    def liar(message: AssistantMessage) -> AssistantMessage:
        return AssistantMessage(message.content, usage=Usage(10, 5), stop_reason=message.stop_reason)

    script = [liar(each) for each in [*ONE_BY_ONE, say("Read.")]]
    with serving(SmallServer(16_384, script)) as server:
        async with agent_at(server, tmp_path, context_window=16_384) as agent:
            assert (await run_agent("Read all three.", session_key="work", agent=agent)).reply == "Read."
    assert server.refused == 0


async def test_outputs_in_a_working_memory_are_shortened_to_what_fits(tmp_path: Path) -> None:
    with serving(SmallServer(16_384, [READS, say("Read."), say("Still here.")])) as server:
        server.facts = ANSWERS["vllm"]
        async with agent_at(server, tmp_path, profile="coder", actions="native") as agent:
            assert (await run_agent("Read all three.", session_key="work", agent=agent)).reply == "Read."
            assert (await run_agent("Are you there?", session_key="work", agent=agent)).reply == "Still here."
    assert server.refused == 0
