"""How an agent asks its model: with its own settings, and in a trace that tells how each cycle came out."""

import asyncio
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.worlds.moo.play import FakeWorld, Watcher, calls, playing, tools

from denizen import Agent
from denizen.errors import ModelError
from denizen.messages import AssistantMessage, Text, Usage
from denizen.testing import FakeClock, LoopbackAnthropic, LoopbackOpenAI
from denizen.worlds.moo.brain import Brain
from denizen.worlds.moo.character import Character
from denizen.worlds.moo.folder import open_folder

SAMPLING = {"temperature": 0.5, "top_p": 0.9, "top_k": 40}
LOCAL = {"min_p": 0.05, "repeat_penalty": 1.1}


async def asked(
    server: LoopbackOpenAI | LoopbackAnthropic, tmp_path: Path, provider: str, sampling: dict[str, float]
) -> dict[str, Any]:
    """The request of an agent with these settings, as the provider gets it."""
    home, folder = tmp_path / "home", tmp_path / "mason"
    home.mkdir(mode=0o700)
    folder.mkdir()
    (home / "denizen.toml").write_text(
        f'model = "{provider}:some-model"\n[providers.{provider}]\nbase_url = "{server.base_url}"\n'
    )
    (home / "denizen.toml").chmod(0o600)
    (folder / "SOUL.md").write_text("# Name\nMason\n")
    lines = "\n".join(f"{name} = {value}" for name, value in sampling.items())
    (folder / "denizen.toml").write_text(f'[moo]\nuser = "mason"\nmax_tokens = 300\n{lines}\n')
    opened = open_folder(folder, environ={"DENIZEN_HOME": str(home), "ANTHROPIC_API_KEY": "sk-test"})
    server.say("Hm.")
    async with Agent(opened.loaded.config, environ=opened.loaded.environ, profile="denizen") as agent:
        session = await agent.open(opened.session_key)
        brain = Brain(agent.record, session, Character(folder, opened.settings), tools, Watcher())
        await brain.begin()
        brain.instruct("Look around.")
        playing = asyncio.create_task(brain.play(FakeWorld(FakeClock())))
        while not server.requests:  # noqa: ASYNC110 (another thread's)
            await asyncio.sleep(0.01)
        playing.cancel()
        await asyncio.wait([playing])
        await agent.leave(session)
    return server.requests[0].json


async def test_its_sampling_reaches_a_local_server(loopback_openai: LoopbackOpenAI, tmp_path: Path) -> None:
    body = await asked(loopback_openai, tmp_path, "test", SAMPLING | LOCAL)
    assert {name: body.get(name) for name in SAMPLING | LOCAL} == SAMPLING | LOCAL


async def test_its_sampling_reaches_anthropic(loopback_anthropic: LoopbackAnthropic, tmp_path: Path) -> None:
    body = await asked(loopback_anthropic, tmp_path, "anthropic", SAMPLING)
    assert {name: body.get(name) for name in [*SAMPLING, "max_tokens"]} == SAMPLING | {"max_tokens": 300}


async def test_what_is_not_set_is_not_sent(loopback_openai: LoopbackOpenAI, tmp_path: Path) -> None:
    assert not (SAMPLING | LOCAL).keys() & await asked(loopback_openai, tmp_path, "test", {})


async def test_each_cycle_is_a_span_around_those_of_its_turn(spans: InMemorySpanExporter, tmp_path: Path) -> None:
    goal = AssistantMessage([Text("GOAL: build")], usage=Usage(100, 20, cost_usd=0.25))
    acts = AssistantMessage(calls("look").content, usage=Usage(100, 20), stop_reason="tool_calls")
    done = AssistantMessage([Text("DONE: built")], usage=Usage(120, 10))
    async with playing(tmp_path, [goal, acts, done, ModelError("gone", kind="unknown")]) as play:
        play.world.say("Hello.")
        await play.until(lambda: play.asked == 3)
        await play.seconds(1)
        play.world.say("Hello again.")
        await play.until(lambda: any("failed" in told for told in play.watcher.told("system")))
        await play.seconds(1)
    cycles = [span for span in spans.get_finished_spans() if span.name == "llm_cycle"]
    told = [dict(span.attributes or {}) for span in cycles]
    assert [(each["goal"], each["outcome"]) for each in told] == [
        ("", "goal_only"),
        ("build", "dispatched"),
        ("", "llm_failed"),
    ]
    assert [told[0][name] for name in ("tokens", "cost_usd")] == [120, 0.25]
    turns = [span for span in spans.get_finished_spans() if span.name.startswith("invoke_agent")]
    around = {span.context.span_id for span in cycles if span.context}
    assert turns
    assert all(span.parent and span.parent.span_id in around for span in turns)
