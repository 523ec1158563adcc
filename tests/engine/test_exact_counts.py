"""Near its window a context is counted by the provider before it is made smaller, and nowhere else."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.documents import scanned
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, say

from denizen import Agent, run_agent
from denizen.config import Config
from denizen.config.settings import AgentSettings, AuthProfileSettings, ModelSettings, ProviderSettings
from denizen.errors import ModelError
from denizen.events import Compacted
from denizen.messages import AssistantMessage, Text, Usage, UserMessage
from denizen.ports import Limits, ModelRequest
from denizen.testing import LoopbackAnthropic, ScriptedModel
from denizen.text.documents import read_pdf

WINDOW = 20_000
COUNT, CALL = "/v1/messages/count_tokens", "/v1/messages"
LONG = "word " * 5_000
"""Some 7,000 tokens by the estimate, and 5,000 by the provider."""


@pytest.fixture
async def agent(loopback_anthropic: LoopbackAnthropic, tmp_path: Path) -> AsyncIterator[Agent]:
    """An agent whose session holds two long messages, and with a third seems to be larger than its window."""
    name = "anthropic:claude-sonnet-4-5"
    config = Config(
        model=name,
        providers={
            "anthropic": ProviderSettings(
                base_url=loopback_anthropic.base_url,
                auth_profiles=[AuthProfileSettings(id="me", api_key="key-0123456789")],
            )
        },
        models={name: ModelSettings(context_window=WINDOW)},
        agent=AgentSettings(workspace_dir=tmp_path / "workspace", max_retries=0, max_tokens=1_000),
        home=tmp_path,
        workspace=tmp_path / "workspace",
    )
    async with Agent(config, tools=[], environ={}) as agent:
        for number in range(2):
            loopback_anthropic.say(AssistantMessage([Text("yes")], usage=Usage(100, 1)))
            await run_agent(f"{number} {LONG}", session_key="work", agent=agent)
        yield agent


def paths(server: LoopbackAnthropic) -> list[str]:
    """What was asked from the third turn on."""
    return [request.path for request in server.requests[2:]]


async def test_what_fits_by_the_providers_count_is_not_made_smaller(
    agent: Agent, loopback_anthropic: LoopbackAnthropic, host: Host
) -> None:
    loopback_anthropic.fail(200, b'{"input_tokens": 15000}')
    loopback_anthropic.say("It fits.", "Still.")
    result = await run_agent(LONG, session_key="work", agent=agent, io=host)
    assert result.reply == "It fits."
    assert (await run_agent("And now?", session_key="work", agent=agent, io=host)).reply == "Still."
    assert paths(loopback_anthropic) == [COUNT, CALL, CALL]
    assert host.of(Compacted) == []
    counted, asked = (request.json for request in loopback_anthropic.requests[2:4])
    assert counted["messages"] == asked["messages"]
    assert counted["system"] == asked["system"]
    assert "max_tokens" not in counted
    assert "stream" not in counted
    assert asked["max_tokens"] == 1_000


@pytest.mark.parametrize(
    ("status", "answer"),
    [(200, b'{"input_tokens": 19500}'), (500, b"down"), (200, b"[]"), (200, b"<html>")],
    ids=["too large", "failed", "no number", "no JSON"],
)
async def test_what_does_not_fit_or_cannot_be_counted_is_made_smaller(
    agent: Agent, loopback_anthropic: LoopbackAnthropic, host: Host, status: int, answer: bytes
) -> None:
    loopback_anthropic.fail(status, answer)
    loopback_anthropic.otherwise = lambda _: "words"
    await run_agent(LONG, session_key="work", agent=agent, io=host)
    assert paths(loopback_anthropic)[0] == COUNT
    assert len(host.of(Compacted)) == 1


async def test_documents_are_counted_by_the_provider_not_by_their_pages(
    agent: Agent, loopback_anthropic: LoopbackAnthropic, host: Host
) -> None:
    scan = read_pdf(scanned(pages=20), "scan.pdf")  # estimated to fill the window, as each page may be a picture
    loopback_anthropic.fail(200, b'{"input_tokens": 15000}')
    loopback_anthropic.say("A blank page.")
    said = UserMessage([Text("What is it?"), scan])
    assert (await run_agent(said, session_key="work", agent=agent, io=host)).reply == "A blank page."
    assert paths(loopback_anthropic) == [COUNT, CALL]
    assert host.of(Compacted) == []
    counted = loopback_anthropic.requests[2].json["messages"][-1]["content"]
    assert [block["type"] for block in counted][:2] == ["text", "document"]


class FailsToCount(ScriptedModel):
    """A model that raises where it should give None."""

    error: Exception = ModelError("not now")

    async def count_tokens(self, request: ModelRequest) -> int | None:
        raise self.error


@pytest.mark.parametrize("error", [ModelError("not now"), ConnectionResetError()], ids=["a model error", "a system's"])
async def test_a_count_that_fails_does_not_fail_the_turn(agent_of: MakeAgent, error: Exception) -> None:
    model = FailsToCount([say("It fits.")], limits=Limits(2_000))
    model.error = error
    async with agent_of(model=model) as agent:
        assert (await run_agent(LONG, session_key="work", agent=agent)).reply == "It fits."


async def test_a_server_that_does_not_count_is_asked_once(
    agent: Agent, loopback_anthropic: LoopbackAnthropic, host: Host
) -> None:
    loopback_anthropic.fail(404, "no such path")
    loopback_anthropic.otherwise = lambda _: "yes"
    for _ in range(3):
        await run_agent(LONG * 2, session_key="work", agent=agent, io=host)
    assert paths(loopback_anthropic).count(COUNT) == 1


async def test_far_from_the_window_nothing_is_counted(agent: Agent, loopback_anthropic: LoopbackAnthropic) -> None:
    loopback_anthropic.say("Hello.")
    await run_agent("Hi", session_key="else", agent=agent)
    assert paths(loopback_anthropic) == [CALL]
