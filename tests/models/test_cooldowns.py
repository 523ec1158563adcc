"""Keys that rest after a failure: in all agents of the process, and no longer than helps anybody."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from denizen import Agent, load_config, run_agent
from denizen.config import Config
from denizen.errors import ModelError
from denizen.events import Failed, Finished, Retry, Retrying
from denizen.messages import Text, UserMessage
from denizen.models.failover import Failover
from denizen.models.http import Http
from denizen.models.openai import OpenAIModel
from denizen.models.profiles import Candidate
from denizen.models.providers import provider_named
from denizen.ports import ModelRequest
from denizen.testing import FakeClock, LoopbackOpenAI, Step


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


async def test_key_that_failed_in_the_last_turn_makes_this_one_wait_a_second_and_says_so(
    tmp_path: Path, server: LoopbackOpenAI
) -> None:
    clock, events = FakeClock(), list[object]()
    async with Agent(config_of(tmp_path, server, "openai:m", ["only"]), tools=[], environ={}, clock=clock) as agent:
        for _ in range(4):
            server.fail(500, "busy")
        with pytest.raises(ModelError):
            await run_agent("Hello?", agent=agent)
        await clock.sleep(3)
        clock.slept.clear()
        server.say("Hello.")
        result = await run_agent("Hello?", agent=agent, on_event=events.append)
    assert clock.slept == [1]
    assert result.retries == 0
    [wait] = [event for event in events if isinstance(event, Retry)]
    assert (wait.attempt, wait.delay, wait.model, wait.profile_id) == (0, 1, "openai:m", "only")
    assert wait.words == "busy (HTTP 500): failed before, trying again in 1 s (its cool-down)"


async def test_wait_that_the_provider_asks_for_is_no_cooldown(tmp_path: Path, server: LoopbackOpenAI) -> None:
    events = list[object]()
    server.fail(429, "Slow down", {"Retry-After": "16"})
    server.fail(500, "busy")
    server.say("Hello.")
    config = config_of(tmp_path, server, "openai:m", ["only"])
    async with Agent(config, tools=[], environ={}, clock=FakeClock()) as agent:
        await run_agent("Hello?", agent=agent, on_event=events.append)
    assert [event.words for event in events if isinstance(event, Retry)] == [
        "Slow down (HTTP 429): trying again in 16 s (the provider asks for that)",
        "busy (HTTP 500): trying again in 2 s (its cool-down)",
    ]


async def test_server_that_never_sends_a_byte_is_given_up_after_one_time_out() -> None:
    with LoopbackOpenAI() as mute, LoopbackOpenAI() as other:
        mute.send(Step.STALL)
        other.say("Hello.")
        models = [
            OpenAIModel("m", provider_named(name), base_url=server.base_url, http=Http(stream_silence_s=0.1))
            for name, server in (("mute", mute), ("other", other))
        ]
        failover = Failover([Candidate(model.name, model) for model in models], FakeClock())
        request = ModelRequest([UserMessage([Text("Hello?")])], stream=True)
        events = [event async for event in failover.stream(request)]
        await failover.close()
        assert [event.model for event in events if isinstance(event, Retrying)] == ["other:m"]
        assert isinstance(events[-1], Finished)
        assert len(mute.requests) == 1


async def test_server_that_never_sends_a_byte_fails_where_there_is_no_other() -> None:
    with LoopbackOpenAI() as mute:
        mute.send(Step.STALL)
        model = OpenAIModel("m", provider_named("mute"), base_url=mute.base_url, http=Http(stream_silence_s=0.1))
        failover = Failover([Candidate(model.name, model)], FakeClock())
        events = [event async for event in failover.stream(ModelRequest([UserMessage([Text("Hello?")])], stream=True))]
        await failover.close()
        assert [type(event) for event in events] == [Failed]
        assert len(mute.requests) == 1


async def test_a_profile_of_a_world_says_how_long_a_key_rests(tmp_path: Path, server: LoopbackOpenAI) -> None:
    clock = FakeClock()
    for _ in range(3):
        server.fail(529, "Overloaded")
    server.say("Here I am.")
    async with Agent(
        config_of(tmp_path, server, "openai:m", ["k"]), profile="denizen", environ={}, clock=clock
    ) as agent:
        assert (await agent.run("Hello?")).reply == "Here I am."
    assert clock.slept == [5, 10, 20]


async def test_failures_of_earlier_turns_do_not_lengthen_the_waits_of_the_next(
    tmp_path: Path, server: LoopbackOpenAI
) -> None:
    clock, replies = FakeClock(), list[str]()
    async with Agent(config_of(tmp_path, server, "llamacpp:m", ["none"]), tools=[], environ={}, clock=clock) as agent:
        for _ in range(6):
            server.fail(500, "busy")
        server.say(*["Hello."] * 7)
        for _ in range(7):
            try:
                replies.append((await run_agent("Hello?", agent=agent)).reply)
            except ModelError:
                replies.append("failed")
    assert replies.count("failed") == 1
    assert sum(clock.slept) < 14
