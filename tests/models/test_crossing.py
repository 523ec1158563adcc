"""A turn that began in one wire format goes on in another, and back, whatever the first one left in the transcript."""

import base64
import itertools
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.documents import LINE, PAPER
from tests.models.formats import FORMATS, PICTURE, PICTURE_CODE, Format

from denizen import Agent, Config, run_agent, tool
from denizen.config.settings import AgentSettings, AuthProfileSettings, ProviderSettings
from denizen.events import LlmStream, Retry, RunEvent, TextDelta, Withdrawn
from denizen.messages import AssistantMessage, Image, Text, Thinking, ToolResult, UserMessage, UserPart
from denizen.ports import Traits
from denizen.testing import FakeClock, Step
from denizen.testing.loopback import LoopbackServer

PAIRS = [*itertools.permutations(FORMATS, 2)]
PAPER_CODE = base64.b64encode(PAPER.data).decode()
QUOTA = "insufficient_quota: no more for this key"


@tool(traits=Traits.READS | Traits.REPEATABLE)
def look(at: str) -> list[UserPart]:
    """Look at something."""
    return [Text(f"seen {at}"), Image("image/png", PICTURE), PAPER]


@pytest.fixture(params=PAIRS, ids=[f"{first.provider} to {second.provider}" for first, second in PAIRS])
def pair(request: pytest.FixtureRequest) -> tuple[Format, Format]:
    """Who begins, and who goes on."""
    return request.param


@pytest.fixture
def servers(pair: tuple[Format, Format]) -> Iterator[Sequence[LoopbackServer]]:
    """Their servers."""
    with ExitStack() as open_servers:
        yield [open_servers.enter_context(each.server()) for each in pair]


@pytest.fixture(params=[True, False], ids=["streamed", "in one piece"])
def stream(request: pytest.FixtureRequest) -> bool:
    """Whether deltas are asked for."""
    return request.param


@pytest.fixture
async def agent(pair: tuple[Format, Format], servers: Sequence[LoopbackServer], tmp_path: Path) -> AsyncIterator[Agent]:
    """An agent with the second as the first's fall-back."""
    first, second = pair
    providers = {each.provider: at(server) for each, server in zip(pair, servers, strict=True)}
    async with agent_of(tmp_path, first.model, providers, second.model) as agent:
        yield agent


def at(server: LoopbackServer, api: Any = "") -> ProviderSettings:
    keys = [AuthProfileSettings(id="main", api_key="a-long-enough-key")]
    return ProviderSettings(base_url=server.base_url, auth_profiles=keys, api=api)


def agent_of(
    home: Path, model: str, providers: dict[str, ProviderSettings], *fallbacks: str, max_retries: int = 3
) -> Agent:
    settings = AgentSettings(workspace_dir=home / "workspace", max_retries=max_retries)
    config = Config(model=model, fallback_models=[*fallbacks], providers=providers, home=home, agent=settings)
    return Agent(config, tools=[look], clock=FakeClock(), environ={})


def hear(_: RunEvent) -> None:
    """Deltas are asked for where somebody hears them."""


def said(request: Any) -> str:
    return json.dumps(request, ensure_ascii=False)


def holds_all(request: Any, *, results: int) -> bool:
    """Whether a request has the question, and so many results with their words, pictures and documents."""
    text = said(request)
    documents = text.count(LINE) + text.count(PAPER_CODE)
    return (
        "What is there?" in text
        and text.count("seen é") == results
        and text.count(PICTURE_CODE) == results
        and documents == results + 1
    )


async def test_a_turn_goes_on_elsewhere_and_comes_back(
    pair: tuple[Format, Format], servers: Sequence[LoopbackServer], agent: Agent, *, stream: bool
) -> None:
    (first, second), (one, two) = pair, servers
    one.say(first.answer)
    one.fail(429, QUOTA)
    two.say(second.answer)
    two.fail(429, QUOTA)
    one.say("Two lamps.")
    asked = UserMessage([Text("What is there?"), PAPER])
    result = await run_agent(asked, session_key="work", agent=agent, on_event=hear if stream else None)
    assert result.reply == "Two lamps."
    elsewhere, again = two.requests[0].json, one.requests[-1].json
    second.check(elsewhere)
    first.check(again)
    assert holds_all(elsewhere, results=1)
    assert holds_all(again, results=2)
    assert [each for each in first.own if each in said(elsewhere)] == []
    assert [each for each in second.own if each in said(again)] == []
    assert [each for each in first.own if each not in said(again)] == []


async def test_thoughts_are_kept_and_said_to_nobody_else(
    pair: tuple[Format, Format], servers: Sequence[LoopbackServer], agent: Agent, *, stream: bool
) -> None:
    (first, _), (one, two) = pair, servers
    one.say(first.answer)
    one.fail(429, QUOTA)
    two.say("Two lamps.")
    result = await run_agent("What is there?", session_key="work", agent=agent, on_event=hear if stream else None)
    thoughts = [part.text for part in result.messages[1].content if isinstance(part, Thinking)]
    assert thoughts == [part.text for part in first.answer.content if isinstance(part, Thinking)]
    assert [each for each in thoughts if each in said(two.requests[0].json)] == []


@pytest.mark.parametrize(
    ("number", "which"),
    [(number, which) for number, each in enumerate(FORMATS) for which in range(len(each.overloaded))],
)
async def test_failure_amid_the_words_loses_nothing_that_was_said(number: int, which: int, tmp_path: Path) -> None:
    first, second = FORMATS[number], FORMATS[number - 1]
    shown: list[RunEvent] = []
    with first.server() as one, second.server() as two:
        one.say(first.answer)
        begun = one.wire.streamed(AssistantMessage([Text("Half")]))
        spoken = next(place for place, piece in enumerate(begun) if b"Half" in piece)
        one.send(*begun[: spoken + 1], Step.HOLD, first.overloaded[which])
        two.say("Two lamps.")

        def hear(event: RunEvent) -> None:
            shown.append(event)
            if event == LlmStream(TextDelta("Half")):
                one.release()

        providers = {first.provider: at(one), second.provider: at(two)}
        async with agent_of(tmp_path, first.model, providers, second.model, max_retries=0) as agent:
            asked = UserMessage([Text("What is there?"), PAPER])
            result = await run_agent(asked, session_key="work", agent=agent, on_event=hear)
        [elsewhere] = [each.json for each in two.requests]
    assert (result.reply, result.retries) == ("Two lamps.", 1)
    [retry] = [each for each in shown if isinstance(each, Retry)]
    assert (retry.reason, retry.model, "Overloaded" in retry.error) == ("timeout", second.model, True)
    assert [each.text for each in shown if isinstance(each, Withdrawn)] == ["Half"]
    second.check(elsewhere)
    assert holds_all(elsewhere, results=1)
    assert "Half" not in said(elsewhere)
    assert [type(message) for message in result.messages] == [
        UserMessage,
        AssistantMessage,
        ToolResult,
        AssistantMessage,
    ]


async def test_formats_of_one_provider_do_not_send_each_other_s_blocks(
    pair: tuple[Format, Format], servers: Sequence[LoopbackServer], tmp_path: Path
) -> None:
    (first, second), (one, two) = pair, servers
    one.say(first.answer, "Two lamps.", "Three lamps.")
    two.say("No more.")
    for format, server in ((first, one), (second, two), (first, one)):
        name = f"office:{format.model.partition(':')[2]}"
        async with agent_of(tmp_path, name, {"office": at(server, format.api)}) as agent:
            await run_agent("What is there?", session_key="work", agent=agent)
    [elsewhere], again = [each.json for each in two.requests], one.requests[-1].json
    second.check(elsewhere)
    first.check(again)
    assert "Two lamps." in said(elsewhere)
    assert [each for each in first.own if each in said(elsewhere)] == []
    assert [each for each in first.own if each not in said(again)] == []
