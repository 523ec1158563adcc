"""A working memory in the loop: what a provider gets, and what a crash, a fork or a stop leaves of it."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import DEFAULT, Host, call, requests_of, run_agent, say

from denizen import Agent, Config, tool
from denizen.actions import Native
from denizen.actions.shell import Shell
from denizen.config.settings import PolicySettings, Rule
from denizen.context import WorkingMemory
from denizen.engine.compact import compact
from denizen.engine.next_request import next_request
from denizen.entries import AnyEntry, AssistantEntry
from denizen.messages import AssistantMessage, Message, ToolCall, ToolResult
from denizen.models.anthropic import AnthropicModel
from denizen.models.openai import OpenAIModel
from denizen.ports import ActionFormat, Answer, Model, Toolset, Traits
from denizen.testing import LoopbackAnthropic, LoopbackOpenAI
from denizen.testing.loopback import LoopbackServer
from denizen.worlds.code.tools.working_notes import keep, note, notes
from denizen.worlds.world import Profile

Entries = Callable[[Agent], Awaitable[list[AnyEntry]]]


@tool(traits=Traits.READS | Traits.REPEATABLE)
def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


@tool(traits=Traits.WRITES)
def change(what: str) -> str:
    """Change something."""
    return f"changed {what}"


TOOLS = (look, change, keep, note, notes)
INVESTIGATION = (
    call(("look", {"at": "alpha"}), ("look", {"at": "beta"})),
    call(("keep", {"outputs": [2]}), ("look", {"at": "gamma"})),
    call(("note", {"text": "gamma calls delta"}), ("look", {"at": "delta"})),
    call(("keep", {}), ("look", {"at": "epsilon"})),
    say("It is beta."),
)


@pytest.fixture(params=[Native, Shell])
def actions(request: pytest.FixtureRequest) -> ActionFormat:
    return request.param()


@pytest.fixture
def coder(agent_of: MakeAgent, actions: ActionFormat) -> MakeAgent:
    """`coder(*replies)`: an agent with a working memory, whose model says them in its action format."""

    def make(*replies: Any, **options: Any) -> Agent:
        script = [written(reply, actions) for reply in replies]
        return agent_of(*script, profile=Profile("coder", actions, WorkingMemory), tools=TOOLS, **options)

    return make


def written(reply: Any, actions: ActionFormat) -> Any:
    """An answer with structured calls, as the format writes them."""
    if isinstance(actions, Native) or not isinstance(reply, AssistantMessage) or not reply.tool_calls:
        return reply
    return say("\n".join(f"$({actions.show(each, Toolset(TOOLS))})" for each in reply.tool_calls))


def told(messages: Sequence[Message]) -> str:
    return "\n".join(message.text for message in messages)


# Over the wire

SERVERS: Sequence[tuple[type[LoopbackServer], Callable[..., Model]]] = (
    (LoopbackAnthropic, AnthropicModel),
    (LoopbackOpenAI, OpenAIModel),
)


@pytest.fixture(params=SERVERS, ids=["anthropic", "openai"])
async def bodies(request: pytest.FixtureRequest, coder: MakeAgent, actions: ActionFormat) -> list[bytes]:
    """The requests of the investigation as they came to a provider's server."""
    server_type, model_type = request.param
    with server_type() as server:
        server.say(*(written(reply, actions) for reply in INVESTIGATION))
        agent = coder(model=model_type("m", base_url=server.base_url, api_key="k"))
        assert (await run_agent("which is it?", agent=agent)).reply == "It is beta."
        await agent.close()
        return [each.body for each in server.requests]


async def test_an_output_is_sent_once_and_a_kept_one_from_then_on(bodies: list[bytes]) -> None:
    sent = {name: [f"saw {name}".encode() in body for body in bodies] for name in ("alpha", "beta", "gamma", "delta")}
    assert sent == {
        "alpha": [False, True, False, False, False],
        "beta": [False, True, True, True, True],
        "gamma": [False, False, True, False, False],
        "delta": [False, False, False, True, True],
    }
    assert [b"[note] gamma calls delta" in body for body in bodies] == [False, False, False, True, True]


async def test_what_was_sent_at_the_beginning_is_sent_again_byte_by_byte(bodies: list[bytes]) -> None:
    openings = [b"which is it?", b"which is it?", b"saw beta", b"calls delta"]
    for opening, one, two in zip(openings, bodies, bodies[1:], strict=False):
        same = next((place for place, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), len(one))
        assert opening in one[:same]


async def test_the_end_of_what_stays_is_marked_for_the_providers_cache(coder: MakeAgent, actions: ActionFormat) -> None:
    with LoopbackAnthropic() as server:
        server.say(*(written(reply, actions) for reply in INVESTIGATION))
        agent = coder(model=AnthropicModel("m", base_url=server.base_url, api_key="k"))
        await run_agent("which is it?", agent=agent)
        await agent.close()
        last = server.requests[-1].json["messages"][0]["content"]
    beta, delta = (actions.show(ToolCall("", "look", {"at": at}), Toolset(TOOLS)) for at in ("beta", "delta"))
    assert [block["text"].strip().partition("\n")[0] for block in last if "<time>" not in block["text"]] == [
        *["which is it?", f"[kept] $ {beta}", "[note] gamma calls delta", f"[kept] $ {delta}"]
    ]
    assert [block["text"] for block in last if "cache_control" in block] == [last[-1]["text"]]


# Over the life of a session


async def test_what_a_session_would_ask_next_is_what_it_asks(coder: MakeAgent, entries_of: Entries) -> None:
    agent = coder(*INVESTIGATION)
    await run_agent("which is it?", agent=agent)
    entries = await entries_of(agent)
    replies = [place for place, entry in enumerate(entries) if isinstance(entry, AssistantEntry)]
    for place, request in zip(replies, requests_of(agent), strict=True):
        wanted = next_request(agent.record, entries[:place])
        assert (wanted.messages, wanted.system, wanted.tools) == (request.messages, request.system, request.tools)


async def test_the_next_turn_has_what_was_kept_and_the_answer_alone(coder: MakeAgent) -> None:
    agent = coder(*INVESTIGATION, say("Yes."))
    await run_agent("which is it?", agent=agent)
    await run_agent("sure?", agent=agent)
    question, answer, opening = requests_of(agent)[-1].messages
    assert question.text.startswith("which is it?")
    assert answer.text == "It is beta."
    assert "saw beta" in opening.text
    assert "saw epsilon" not in told(requests_of(agent)[-1].messages)


async def test_another_process_sees_the_same(coder: MakeAgent) -> None:
    first = coder(*INVESTIGATION)
    await run_agent("which is it?", agent=first)
    again, other = coder(say("Yes.")), coder(say("Yes."))
    await again.store.fork(DEFAULT, "other")
    await run_agent("sure?", agent=again)
    await run_agent("sure?", agent=other, session_key="other")
    assert requests_of(again)[0].messages == requests_of(other)[0].messages
    assert "saw beta" in told(requests_of(other)[0].messages)


async def test_a_fork_from_before_it_was_kept_has_it_not(coder: MakeAgent, entries_of: Entries) -> None:
    agent = coder(*INVESTIGATION, say("No."))
    await run_agent("which is it?", agent=agent)
    first = next(entry for entry in await entries_of(agent) if isinstance(entry, AssistantEntry))
    await agent.store.fork(DEFAULT, "early", at=first.parent)
    await run_agent("and now?", agent=agent, session_key="early")
    assert "saw" not in told(requests_of(agent)[-1].messages)


async def test_going_back_forgets_what_was_kept_since(coder: MakeAgent) -> None:
    agent = coder(say("Hello."), *INVESTIGATION, say("No."))
    await run_agent("hello", agent=agent)
    session = await agent.open("default")
    head = session.head
    await session.close()
    await run_agent("which is it?", agent=agent)
    session = await agent.open("default")
    await session.move_head(head)
    await session.close()
    await run_agent("and now?", agent=agent)
    assert [message.text.partition("\n\n<")[0] for message in requests_of(agent)[-1].messages] == [
        *["hello", "Hello.", "and now?"]
    ]


async def test_a_stopped_turn_leaves_what_it_kept(coder: MakeAgent) -> None:
    hangs = asyncio.Event()

    async def never(_: object) -> AssistantMessage:
        hangs.set()
        return await asyncio.Future()

    agent = coder(*INVESTIGATION[:2], never, say("Go on with what?"))
    turn = asyncio.create_task(run_agent("which is it?", agent=agent))
    await hangs.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    await run_agent("go on", agent=agent)
    _, ended, opening = requests_of(agent)[-1].messages
    assert ended.text == "[the turn ended: cancelled]"
    assert "saw beta" in opening.text
    assert "saw gamma" not in opening.text


async def test_a_parked_turn_goes_on_with_what_it_saw(coder: MakeAgent) -> None:
    script = (INVESTIGATION[0], call(("keep", {"outputs": [1]}), ("change", {"what": "beta"})), say("Changed."))
    asks = Config(policy=PolicySettings(rules=[Rule(tool="change", decide="ask")]))
    free = coder(*script)
    await run_agent("change beta", agent=free, session_key="free")
    parked = coder(*script, config=asks)
    assert (await run_agent("change beta", agent=parked)).stop_reason == "parked"
    host = Host()
    host.answer = lambda ask: Answer(ask.call_id, allow=True)
    assert (await run_agent(None, agent=parked, io=host)).reply == "Changed."
    assert requests_of(parked)[-1].messages == requests_of(free)[-1].messages


async def test_keeping_what_was_not_shown_is_reported_to_the_model(coder: MakeAgent) -> None:
    agent = coder(INVESTIGATION[0], call(("keep", {"outputs": [7]})), say("Sorry."))
    result = await run_agent("which is it?", agent=agent)
    refused = [message for message in result.messages if isinstance(message, ToolResult)][-1]
    assert refused.is_error
    assert "[1] to [2] were shown" in refused.text


async def test_there_is_nothing_to_compact(coder: MakeAgent) -> None:
    agent = coder(*INVESTIGATION)
    await run_agent("which is it?", agent=agent)
    session = await agent.open("default")
    assert not await compact(agent.record, session, Host())
    await session.close()


COMMANDS = {"keep": "alpha beta", "keep all": "alpha beta", "keep 2": "beta", "keep 2 1": "beta alpha", "keep 3": ""}


@pytest.mark.parametrize(("command", "kept"), COMMANDS.items())
async def test_keep_as_a_command(agent_of: MakeAgent, command: str, kept: str) -> None:
    texts = ("$(look alpha) $(look beta)", f"$({command}) $(note it's (probably) beta)", "Yes.")
    agent = agent_of(*map(say, texts), profile=Profile("coder", Shell(), WorkingMemory), tools=TOOLS)
    await run_agent("which is it?", agent=agent)
    opening = requests_of(agent)[-1].messages[0].text
    assert re.findall(r"saw (\w+)", opening) == kept.split()
    assert "[note] it's (probably) beta" in opening
