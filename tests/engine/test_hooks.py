"""Hooks: commands of the user's that hear what a turn does, and may refuse it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, call, results, say

from denizen import Config, run_agent, tool
from denizen.config.settings import HookSettings
from denizen.events import Notice
from denizen.ports import Traits

HEAR = "cat >> heard; echo >> heard"


@tool(traits=Traits.READS | Traits.REPEATABLE)
def look(at: str = "") -> str:
    """Look at something."""
    return f"seen {at}"


@tool(traits=Traits.WRITES)
def change(what: str) -> str:
    """Change something."""
    return f"changed {what}"


@pytest.fixture
def hooked(agent_of: MakeAgent) -> Any:
    """`hooked(*replies, event=command, …)`: an agent with those hooks; a tuple is a pattern and a command."""

    def make(*replies: Any, **commands: Any) -> Any:
        given = {event: each if isinstance(each, tuple) else ("*", each) for event, each in commands.items()}
        events: list[Any] = [*given]
        hooks = [HookSettings(event=event, match=given[event][0], command=given[event][1]) for event in events]
        return agent_of(*replies, tools=[look, change], config=Config(hooks=hooks))

    return make


def heard(agent: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(agent.workspace, "heard").read_text().splitlines()]


def notices(host: Host) -> list[str]:
    return [event.text for event in host.of(Notice)]


async def test_each_event_comes_with_its_details(hooked: Any, host: Host) -> None:
    events = ("turn_start", "before_tool", "after_tool", "turn_end")
    agent = hooked(call(("look", {"at": "it"})), say("Done."), **dict.fromkeys(events, HEAR))
    await run_agent("Look", agent=agent, io=host)
    start, before, after, end = heard(agent)
    assert {"session", "workspace", "channel", "chat"} < start.keys()
    assert (start["event"], start["message"]) == ("turn_start", "Look")
    assert (before["event"], before["tool"], before["args"]) == ("before_tool", "look", {"at": "it"})
    assert (after["event"], after["result"], after["is_error"]) == ("after_tool", "seen it", False)
    assert (end["event"], end["stop_reason"], end["reply"]) == ("turn_end", "answered", "Done.")
    assert notices(host) == []


@pytest.mark.parametrize("profile", ["assistant", "coder", "gateway"])
async def test_every_profile_has_hooks(agent_of: MakeAgent, profile: str) -> None:
    events: list[Any] = ["turn_start", "before_tool", "after_tool", "turn_end"]
    config = Config(hooks=[HookSettings(event=event, command=HEAR) for event in events])
    agent = agent_of(call(("look", {})), say("Done."), tools=[look], config=config, profile=profile)
    await run_agent("Look", agent=agent)
    assert [each["event"] for each in heard(agent)] == events


async def test_a_tool_is_refused_with_the_hooks_words_and_the_model_sees_them(hooked: Any, host: Host) -> None:
    refuse = ("ch*", "echo 'not on a Sunday' >&2; exit 2")
    agent = hooked(call(("change", {"what": "it"})), call(("look", {})), say("Well."), before_tool=refuse)
    result = await run_agent("Change it", agent=agent, io=host)
    told = [(each.text, each.is_error) for each in results(result)]
    assert told == [("not run: not on a Sunday", True), ("seen ", False)]
    assert result.stop_reason == "answered"


async def test_a_turn_is_refused_before_the_model_sees_the_message(hooked: Any, host: Host) -> None:
    agent = hooked("Hello.", turn_start="grep -q secret && echo 'none of that' >&2 && exit 2; exit 0")
    refused = await run_agent("the secret", agent=agent, io=host, session_key="s")
    assert refused.stop_reason == "error"
    assert any("none of that" in text for text in notices(host))
    assert agent.model.requests == []
    assert (await run_agent("hi", agent=agent, session_key="s")).reply == "Hello."
    assert "the secret" not in str(agent.model.requests[0].messages)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("echo broken >&2; exit 1", "failed with status 1: broken"),
        ("kill -9 $$", "failed with status -9"),
        ("no-such-program", "failed with status 127"),
    ],
)
async def test_other_failures_are_notices(hooked: Any, host: Host, command: str, says: str) -> None:
    agent = hooked(call(("look", {})), say("Done."), before_tool=command)
    assert (await run_agent("Look", agent=agent, io=host)).reply == "Done."
    assert any(says in text for text in notices(host))


async def test_only_what_begins_can_be_refused(hooked: Any, host: Host) -> None:
    agent = hooked(call(("look", {})), say("Done."), after_tool="exit 2", turn_end="exit 2")
    result = await run_agent("Look", agent=agent, io=host)
    assert (result.reply, results(result)[0].text) == ("Done.", "seen ")
    assert len([text for text in notices(host) if "failed with status 2" in text]) == 2


async def test_notices_are_passed_on_and_a_hook_that_fails_on_them_ends_it(hooked: Any, host: Host) -> None:
    agent = hooked(say(""), notice=f"{HEAR}; exit 1")
    await run_agent("hi", agent=agent, io=host)
    assert [each["text"] for each in heard(agent)] == ["The model's answer is empty."]
    assert len(notices(host)) == 2


async def test_a_hook_that_takes_too_long_is_ended(agent_of: MakeAgent, host: Host) -> None:
    slow = HookSettings(event="turn_start", command="exec sleep 600", timeout=0.2)
    agent = agent_of("Hello.", tools=(), config=Config(hooks=[slow]))
    assert (await run_agent("hi", agent=agent, io=host)).reply == "Hello."
    assert "took longer than 0.2 s" in notices(host)[0]


async def test_what_a_hook_leaves_in_the_background_is_not_waited_for(hooked: Any, host: Host) -> None:
    agent = hooked("Hello.", turn_start="mkfifo gate; cat gate & exit 0")
    assert (await run_agent("hi", agent=agent, io=host)).reply == "Hello."
    assert not any("hook" in text for text in notices(host))
    (agent.workspace / "gate").write_text("go")


async def test_keys_of_the_home_are_not_in_its_environment(agent_of: MakeAgent, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".env").write_text("SECRET_KEY=canary-key\n")
    hook = HookSettings(event="turn_start", command="env > env")
    agent = agent_of("Hello.", tools=(), config=Config(hooks=[hook]), environ={"MINE": "1"})
    await run_agent("hi", agent=agent)
    seen = (agent.workspace / "env").read_text()
    assert "MINE=1" in seen
    assert "canary" not in seen
