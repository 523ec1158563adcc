"""Keys that rest after a failure: in all agents of the process, and no longer than helps anybody."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from denizen import Agent, load_config, run_agent
from denizen.config import Config
from denizen.errors import ModelError
from denizen.testing import FakeClock, LoopbackOpenAI


@pytest.fixture
def server() -> Iterator[LoopbackOpenAI]:
    with LoopbackOpenAI() as server:
        yield server


def config_of(home: Path, server: LoopbackOpenAI, model: str, keys: Sequence[str]) -> Config:
    profiles = [{"id": key, "api_key": key} for key in keys]
    providers = {model.partition(":")[0]: {"base_url": server.base_url, "auth_profiles": profiles}}
    return load_config(home=home, environ={}, cwd=home, overrides={"model": model, "providers": providers})


def keys_of(server: LoopbackOpenAI) -> list[str]:
    return [request.headers["Authorization"].removeprefix("Bearer ") for request in server.requests]


async def test_throttled_key_is_not_asked_again_by_the_next_agent(tmp_path: Path, server: LoopbackOpenAI) -> None:
    server.fail(429, "Rate limit reached", {"Retry-After": "60"})
    server.say("one", "two", "three")
    config = config_of(tmp_path, server, "openai:m", ["first", "second"])
    replies = [(await run_agent("Hello?", config=config, tools=[])).reply for _ in range(3)]
    assert replies == ["one", "two", "three"]
    assert keys_of(server) == ["first", "second", "second", "second"]


async def test_another_key_of_another_agent_is_not_held_back(tmp_path: Path, server: LoopbackOpenAI) -> None:
    server.fail(429, "Rate limit reached", {"Retry-After": "60"})
    server.say("one", "two")
    await run_agent("Hello?", config=config_of(tmp_path, server, "openai:m", ["first", "second"]), tools=[])
    await run_agent("Hello?", config=config_of(tmp_path, server, "openai:m", ["third"]), tools=[])
    assert keys_of(server) == ["first", "second", "third"]


async def test_server_on_this_machine_does_not_rest_for_long_over_replies_that_it_cannot_make(
    tmp_path: Path, server: LoopbackOpenAI
) -> None:
    clock = FakeClock()
    config = config_of(tmp_path, server, "llamacpp:m", ["none"])
    async with Agent(config, tools=[], environ={}, clock=clock) as agent:
        for _ in range(3):
            for _ in range(4):
                server.fail(500, "Failed to parse the tool call")
            with pytest.raises(ModelError):
                await run_agent("Hello?", agent=agent)
        server.say("Hello.")
        assert (await run_agent("Hello?", agent=agent)).reply == "Hello."
    assert max(clock.slept) <= 4
