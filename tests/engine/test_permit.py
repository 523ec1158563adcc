"""Approvals: what the policy asks a person, and turns that wait for the answer."""

from collections.abc import Awaitable, Callable

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, call, kinds, requests_of, results, run_agent, say, user

from denizen import Agent, Config, tool
from denizen.config import load_config
from denizen.config.settings import AgentSettings, PolicySettings, Rule, WebSettings
from denizen.engine import Resume, run_turn
from denizen.entries import AnswerEntry, AnyEntry, AssistantEntry, ParkedEntry, ToolEntry, UserEntry
from denizen.events import Notice, TurnParked
from denizen.messages import AssistantMessage, Text, ToolCall, ToolResult
from denizen.ports import Answer, Ask, Interrupt, Traits
from denizen.testing import FakeClock
from denizen.text.not_run import DROPPED

Entries = Callable[[Agent], Awaitable[list[AnyEntry]]]


@tool(traits=Traits.SENDS)
def send(text: str) -> str:
    """Send a message."""
    return f"sent {text}"


@tool(traits=Traits.READS | Traits.UNTRUSTED | Traits.REPEATABLE)
def page() -> str:
    """A page that others wrote."""
    return "buy now"


@tool(traits=Traits.READS | Traits.PRIVATE | Traits.REPEATABLE)
def diary() -> str:
    """The user's own words."""
    return "secret plans"


def yes(ask: Ask) -> Answer:
    return Answer(ask.call_id, allow=True)


def no(ask: Ask) -> Answer:
    return Answer(ask.call_id, allow=False, text="not today")


async def test_what_may_run_is_asked_and_runs_after_a_yes(agent_of: MakeAgent, host: Host) -> None:
    host.answer = yes
    agent = agent_of(call(("send", {"text": "hi"})), say("ok"), tools=[send])
    result = await run_agent("go", agent=agent, io=host)
    assert (host.asked[0].tool_name, host.asked[0].args) == ("send", {"text": "hi"})
    assert results(result)[0].text == "sent hi"


async def test_a_no_reaches_the_model_with_its_reason(agent_of: MakeAgent, host: Host) -> None:
    host.answer = no
    agent = agent_of(call(("send", {"text": "hi"})), say("I won't"), tools=[send])
    result = await run_agent("go", agent=agent, io=host)
    assert results(result)[0].text == "not run: the user said no: not today"
    assert result.stop_reason == "answered"


async def test_where_nobody_answers_the_turn_is_parked(agent_of: MakeAgent, host: Host, entries_of: Entries) -> None:
    agent = agent_of(call(("send", {"text": "hi"})), tools=[send])
    result = await run_agent("go", agent=agent, io=host)
    assert result.stop_reason == "parked"
    assert host.of(TurnParked)[0].tool_call_id == host.asked[0].call_id
    assert kinds(await entries_of(agent))[-1] == "parked"


async def _answered(agent: Agent, host: Host, answer: AnswerEntry) -> str:
    session = await agent.open("default")
    await session.append(answer)
    result = await run_turn(agent.record, session, Resume(), host)
    await session.close()
    assert result.stop_reason == "answered"
    return results(result)[0].text


async def test_a_parked_turn_goes_on_after_the_answer(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(call(("send", {"text": "hi"})), say("done"), tools=[send])
    await run_agent("go", agent=agent, io=host)
    assert await _answered(agent, host, AnswerEntry(call_id=host.asked[-1].call_id, allow=True)) == "sent hi"
    assert len(host.asked) == 1


async def test_the_result_of_a_parked_turn_stays_as_it_was(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(call(("send", {"text": "hi"})), say("done"), tools=[send])
    parked = await run_agent("go", agent=agent, io=host)
    await _answered(agent, host, AnswerEntry(call_id=host.asked[-1].call_id, allow=True))
    assert [message.text for message in parked.messages] == ["go", ""]


async def test_a_parked_turn_goes_on_after_a_no(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(call(("send", {"text": "hi"})), say("done"), tools=[send])
    await run_agent("go", agent=agent, io=host)
    told = await _answered(agent, host, AnswerEntry(call_id=host.asked[-1].call_id, allow=False, text="use mail"))
    assert told == "not run: the user said no: use mail"


async def test_an_interruption_goes_on_with_a_parked_turn_and_drops_the_calls_of_that_time_alone(
    agent_of: MakeAgent, host: Host
) -> None:
    later = AssistantMessage([ToolCall("c2", "send", {"text": "ho"})], stop_reason="tool_calls")
    agent = agent_of(call(("send", {"text": "hi"})), later, say("done"), tools=[send])
    await run_agent("go", agent=agent, io=host)
    said, told = Interrupt("no, say ho", "m1"), list[str]()
    for answers in ([], [True]):  # what a message said is heard until the turn is over
        host.say(said, *(Answer(host.asked[-1].call_id, allow) for allow in answers))
        session = await agent.open("default")
        result = await run_turn(agent.record, session, Resume(), host)
        await session.close()
        told.append(results(result)[-1].text)
    assert told == [DROPPED, "sent ho"]


async def test_a_parked_turn_stays_parked_until_it_is_answered(
    agent_of: MakeAgent, host: Host, entries_of: Entries
) -> None:
    agent = agent_of(call(("send", {"text": "hi"})), tools=[send])
    await run_agent("go", agent=agent, io=host)
    again = await run_agent("and this?", agent=agent, io=host)
    assert again.stop_reason == "parked"
    assert any("not taken in" in notice.text for notice in host.of(Notice))
    entries = await entries_of(agent)
    assert sum(isinstance(entry, ParkedEntry) for entry in entries) == 1
    assert kinds(entries).count("user") == 1


async def test_a_parked_turn_goes_on_without_an_answer_when_its_time_is_over(
    agent_of: MakeAgent, host: Host, clock: FakeClock
) -> None:
    agent = agent_of(call(("send", {"text": "hi"})), say("then not"), tools=[send])
    await run_agent("go", agent=agent, io=host)
    await clock.sleep(24 * 3600)
    result = await run_agent(None, agent=agent, io=host)
    assert results(result)[0].text == (
        "not run: it needs the user's approval, and nobody answered in time; do without it, or say what you need"
    )
    assert result.reply == "then not"


async def test_an_answer_that_nobody_gave_is_reported_as_such(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(call(("send", {"text": "hi"})), say("then not"), tools=[send])
    await run_agent("go", agent=agent, io=host)
    host.say(Answer(host.asked[-1].call_id, allow=False, text="nobody is at the desk", unasked=True))
    result = await run_agent(None, agent=agent, io=host)
    assert "approval, and nobody is at the desk" in results(result)[0].text


async def test_an_approval_can_hold_for_the_session(agent_of: MakeAgent, host: Host) -> None:
    host.answer = lambda ask: Answer(ask.call_id, allow=True, scope="session")
    twice = call(("send", {"text": "hi"}))
    agent = agent_of(twice, say("one"), twice, say("two"), tools=[send])
    await run_agent("go", agent=agent, io=host)
    await run_agent("once more", agent=agent, io=host)
    assert len(host.asked) == 1


async def test_an_approval_is_for_one_call_though_another_has_its_id(agent_of: MakeAgent, host: Host) -> None:
    host.answer = yes
    first, second = call(("send", {"text": "to mom"})), call(("send", {"text": "to a stranger"}))
    agent = agent_of(first, second, say("one"), first, say("two"), tools=[send])
    await run_agent("go", agent=agent, io=host)
    await run_agent("once more", agent=agent, io=host)
    assert [ask.args["text"] for ask in host.asked] == ["to mom", "to a stranger", "to mom"]


async def test_an_approval_for_the_session_is_for_the_same_arguments(agent_of: MakeAgent, host: Host) -> None:
    @tool(traits=Traits.SENDS)
    def send_file(path: str, to: str) -> str:
        """Send a file."""
        return f"sent {path} to {to}"

    host.answer = lambda ask: Answer(ask.call_id, allow=True, scope="session")
    mom, stranger = (call(("send_file", {"path": "a.txt", "to": who})) for who in ("mom", "a stranger"))
    agent = agent_of(mom, mom, stranger, say("done"), tools=[send_file])
    await run_agent("go", agent=agent, io=host)
    assert [ask.args["to"] for ask in host.asked] == ["mom", "a stranger"]


async def test_an_approval_does_not_override_a_rule_that_denies(agent_of: MakeAgent, host: Host) -> None:
    host.answer = lambda ask: Answer(ask.call_id, allow=True, scope="session")
    rules = [Rule(tool="send", match="*secret*", decide="deny"), Rule(tool="send", match="*plan*", decide="ask")]
    config = Config(policy=PolicySettings(rules=rules))
    agent = agent_of(
        call(("send", {"text": "plan"})), call(("send", {"text": "secret"})), say("x"), tools=[send], config=config
    )
    result = await run_agent("go", agent=agent, io=host)
    assert [each.is_error for each in results(result)] == [False, True]


async def test_a_parked_turn_keeps_its_limits(agent_of: MakeAgent, host: Host) -> None:
    config = Config(agent=AgentSettings(max_iterations=2))
    again = call(("send", {"text": "hi"}), input=10, output=1)
    agent = agent_of(again, again, again, tools=[send], config=config)
    await run_agent("go", agent=agent, io=host)
    session = await agent.open("default")
    stops = []
    for _ in range(2):
        await session.append(AnswerEntry(call_id=host.asked[-1].call_id, allow=True))
        result = await run_turn(agent.record, session, Resume(), host)
        stops.append(result.stop_reason)
    await session.close()
    assert stops == ["parked", "iteration_limit"]
    assert (result.iterations, result.usage.input, result.messages[0].text) == (2, 20, "go")


async def test_the_rule_of_two_holds_after_a_crash(agent_of: MakeAgent, host: Host) -> None:
    config = Config(policy=PolicySettings(rules=[Rule(tool="send", match="*", decide="allow")]))
    agent = agent_of(call(("send", {"text": "plans"})), tools=[page, diary, send], config=config)
    session = await agent.open("default")
    asked = call(("page", {}), ("diary", {}))
    await session.append(UserEntry(message=user("go")))
    await session.append(AssistantEntry(message=asked))
    for each in asked.tool_calls:
        await session.append(ToolEntry(message=ToolResult(each.id, each.name, [Text("seen")])))
    result = await run_turn(agent.record, session, Resume(), host)
    await session.close()
    assert result.stop_reason == "parked"


async def test_an_approval_for_always_becomes_a_rule_of_the_configuration(agent_of: MakeAgent, host: Host) -> None:
    host.answer = lambda ask: Answer(ask.call_id, allow=True, scope="always")
    agent = agent_of(call(("send", {"text": "hi"})), say("one"), tools=[send])
    await run_agent("go", agent=agent, io=host)
    rules = load_config(home=agent.home, environ={}).policy.rules
    assert [(rule.tool, rule.decide) for rule in rules] == [("send", "allow")]


async def test_a_rule_of_the_user_decides(agent_of: MakeAgent, host: Host) -> None:
    config = Config(policy=PolicySettings(rules=[Rule(tool="send", match="*", decide="deny")]))
    agent = agent_of(call(("send", {"text": "hi"})), say("no"), tools=[send], config=config)
    result = await run_agent("go", agent=agent, io=host)
    assert results(result)[0].text.startswith("not run: ")
    assert host.asked == []


async def test_untrusted_text_and_private_data_together_make_a_sending_call_ask(
    agent_of: MakeAgent, host: Host
) -> None:
    config = Config(policy=PolicySettings(rules=[Rule(tool="send", match="*", decide="allow")]))
    script = (call(("page", {})), call(("diary", {})), call(("send", {"text": "plans"})), say("x"))
    result = await run_agent("go", agent=agent_of(*script, tools=[page, diary, send], config=config), io=host)
    assert result.stop_reason == "parked"
    alone = (call(("page", {})), call(("send", {"text": "plans"})), say("x"))
    result = await run_agent(
        "go", agent=agent_of(*alone, tools=[page, diary, send], config=config), io=host, session_key="other"
    )
    assert result.stop_reason == "answered"


async def test_read_only_refuses_everything_but_reads(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(call(("write", {"path": "x", "content": "y"}), ("ls", {})), say("only looked"), read_only=True)
    result = await run_agent("go", agent=agent, io=host)
    assert [each.is_error for each in results(result)] == [True, False]
    assert not (agent.workspace / "x").exists()


async def test_calls_next_to_a_parked_one_wait_with_it(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(call(("send", {"text": "a"}), ("send", {"text": "b"})), say("both"), tools=[send])
    await run_agent("go", agent=agent, io=host)
    session = await agent.open("default")
    await session.append(AnswerEntry(call_id=host.asked[-1].call_id, allow=True))
    parked = await run_turn(agent.record, session, Resume(), host)
    assert parked.stop_reason == "parked"
    await session.append(AnswerEntry(call_id=host.asked[-1].call_id, allow=True))
    result = await run_turn(agent.record, session, Resume(), host)
    await session.close()
    assert result.reply == "both"
    sent = [m.text for m in requests_of(agent)[-1].messages if getattr(m, "name", "") == "send"]
    assert sent == ["sent a", "sent b"]


async def test_a_session_that_waits_is_listed_as_parked_until_it_is_answered(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(say("first"), call(("send", {"text": "hi"})), say("done"), tools=[send])
    await run_agent("hello", agent=agent, io=host)
    await run_agent("go", agent=agent, io=host)
    assert [info.stop_reason for info in await agent.store.list()] == ["parked"]
    await _answered(agent, host, AnswerEntry(call_id=host.asked[-1].call_id, allow=True))
    assert [info.stop_reason for info in await agent.store.list()] == ["answered"]


# What would be refused anyway


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"url": "file:///etc/passwd"}, "must begin with http:// or https://"),
        ({"url": "the docs"}, "must begin with http:// or https://"),
        ({"url": "http://[::1"}, "isn't a web address"),
        ({"url": "http://127.0.0.1:8080/"}, "not a public address"),
        ({"url": "http://10.1.2.3/"}, "not a public address"),
        ({"url": "http://[::ffff:169.254.169.254]/"}, "not a public address"),
        ({"url": "http://2130706433/"}, "a standard way to write an IP address"),
        ({"url": "http://localhost:3000/"}, "not a public address"),
        ({"url": "https://ann:pw@example.org/"}, "with a user name or password"),
        ({"uri": "https://example.org/"}, "web_fetch"),
    ],
)
async def test_nobody_is_asked_about_a_page_that_would_be_refused_anyway(
    agent_of: MakeAgent, host: Host, args: dict[str, str], why: str
) -> None:
    agent = agent_of(call(("web_fetch", args)), say("I can't."))
    result = await run_agent("go", agent=agent, io=host)
    assert (host.asked, result.stop_reason) == ([], "answered")
    assert why in results(result)[0].text


async def test_a_page_that_can_be_fetched_is_asked_about(agent_of: MakeAgent, host: Host) -> None:
    config = Config(web=WebSettings(allow_private=["localhost"]))
    for number, url in enumerate(["https://example.org/", "http://localhost:3000/"]):
        agent = agent_of(call(("web_fetch", {"url": url})), config=config)
        result = await run_agent("go", agent=agent, io=host, session_key=f"s{number}")
        assert result.stop_reason == "parked"


async def test_nobody_is_asked_about_a_call_whose_arguments_do_not_fit(agent_of: MakeAgent, host: Host) -> None:
    agent = agent_of(call(("send", {"words": "hi"})), say("Wrong."), tools=[send])
    result = await run_agent("go", agent=agent, io=host)
    assert host.asked == []
    assert "text" in results(result)[0].text
