"""`spawn`: subagents in the background of a gateway."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.worlds.chat.conftest import Serve, SimulatedClock, key_of, said

from denizen.entries import EndEntry, StateEntry, SystemEntry
from denizen.messages import AssistantMessage, Text, ToolCall, Usage
from denizen.ports import ModelRequest
from denizen.testing import FakeClock


def call(name: str, id: str = "c1", cost: float | None = None, **args: Any) -> AssistantMessage:
    return AssistantMessage([ToolCall(id, name, args)], "scripted", Usage(cost_usd=cost), "tool_calls")


SPAWN = call("spawn", task="Count the stars.")
Line = AssistantMessage | str


def by_task(parent: list[Line], child: list[Any]) -> Callable[[ModelRequest], Any]:
    """Replies for the chat and for its subagent, in whatever order they ask."""

    def reply(request: ModelRequest) -> Any:
        script = child if "~" in request.session_key else parent
        line = script.pop(0)
        return line(request) if callable(line) else AssistantMessage([Text(line)]) if isinstance(line, str) else line

    return reply


class Forever:
    """A reply that never comes; `begun` once it was asked for."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def __call__(self, request: ModelRequest) -> str:
        self.begun.set()
        await asyncio.Event().wait()
        return "never"


async def reports(scene: Any) -> list[SystemEntry]:
    entries = await scene.gateway.agent.record.store.read(key_of("ann"))
    return [entry for entry in entries if isinstance(entry, SystemEntry)]


async def test_the_result_of_a_spawned_subagent_is_seen_in_the_next_turn(serve: Serve) -> None:
    script = by_task([SPAWN, "Begun.", "There are 7."], [call("overhear"), "Seven."])
    async with serve(*[script] * 5) as scene:
        await scene.say("count")
        await scene.settled()
        assert await scene.contents(1) == ["Begun."]
        (kept,) = await reports(scene)
        assert kept.text.endswith("reports:\nSeven.")
        await scene.say("and?")
        assert await scene.contents(2) == ["Begun.", "There are 7."]
        assert "Seven." in said(scene.model)
        entries = await scene.gateway.agent.record.store.read(key_of("ann"))
        seen = next(entry for entry in entries if isinstance(entry, StateEntry) and entry.name == "in_sight")
        assert seen.value["untrusted"] is True


async def test_a_spawned_subagent_that_keeps_failing_is_reported_to_the_session_it_works_for(serve: Serve) -> None:
    def breaks(_: ModelRequest) -> str:
        raise OSError("the disk is gone")

    script = by_task([SPAWN, "Begun.", "It failed."], [breaks, breaks])
    async with serve(*[script] * 5, attempts=2, clock=FakeClock()) as scene:
        await scene.say("count")
        await scene.settled()
        assert await scene.contents(1) == ["Begun."]
        (kept,) = await reports(scene)
        assert "Count the stars." in kept.text
        assert "the disk is gone" in kept.text
        await scene.say("and?")
        assert await scene.contents(2) == ["Begun.", "It failed."], "nothing else goes to the chat"


async def test_a_spawned_subagent_goes_on_after_a_restart_and_reports_once(serve: Serve) -> None:
    forever = Forever()
    before = by_task([SPAWN, "Begun."], [forever])
    async with serve(*[before] * 3) as scene:
        await scene.say("count")
        await forever.begun.wait()
        await scene.contents(1)
    async with serve("Seven.") as scene:
        await scene.settled()
        assert [each.text.rpartition("\n")[2] for each in await reports(scene)] == ["Seven."]


async def test_a_question_of_a_spawned_subagent_goes_to_the_chat(serve: Serve) -> None:
    script = by_task([SPAWN, "Begun."], [call("post", text="7"), "Posted."])
    async with serve(*[script] * 4) as scene:
        await scene.say("count")
        _, question = sorted([each.message.content for each in await scene.replies(2)], key=len)
        assert "post" in question
        await scene.say("/approve")
        await scene.settled()
        asked, reported = await reports(scene)
        assert question in asked.text
        assert reported.text.endswith("reports:\nPosted.")


async def test_at_most_five_work_at_once(serve: Serve) -> None:
    release = asyncio.Event()

    async def wait(request: ModelRequest) -> str:
        await release.wait()
        return "done"

    calls = [ToolCall(f"c{n}", "spawn", {"task": f"task {n}"}) for n in range(6)]
    spawning = AssistantMessage([*calls], "scripted", stop_reason="tool_calls")
    script = by_task([spawning, "Begun."], [wait] * 5)
    async with serve(*[script] * 7) as scene:
        await scene.say("count")
        await scene.contents(1)
        asked = next(each for each in reversed(scene.model.requests) if "~" not in each.session_key)
        assert "5 of your subagents" in str(asked.messages)
        release.set()
        await scene.settled()
        assert len(await reports(scene)) == 5


async def test_a_spawned_subagent_may_spend_what_the_turn_left_that_spawned_it(serve: Serve) -> None:
    spawning = call("spawn", cost=0.5, task="Spend.")
    script = by_task([spawning, "Begun."], [call("look", cost=0.3), call("look", cost=0.3), "never"])
    async with serve(*[script] * 5, config={"agent": {"max_cost_usd": 1.0}}) as scene:
        await scene.say("go")
        await scene.settled()
        (kept,) = await reports(scene)
        assert "budget of this turn is spent: $1.1000" in kept.text


async def test_what_a_spawned_subagent_spends_counts_in_the_session_that_it_works_for(serve: Serve) -> None:
    script = by_task([SPAWN, "Begun.", "never"], [call("look", cost=1.1), "never"])
    async with serve(*[script] * 5, config={"budget": {"session_usd": 1.0}}) as scene:
        await scene.say("go")
        await scene.settled()
        assert "budget of this session" in (await reports(scene))[0].text
        await scene.say("and?")
        assert "budget of this session" in (await scene.contents(2))[1]


async def test_stop_all_stops_the_subagents_too(serve: Serve) -> None:
    forever = Forever()
    script = by_task([SPAWN, "Begun."], [forever])
    async with serve(*[script] * 3) as scene:
        await scene.say("count")
        await forever.begun.wait()
        await scene.contents(1)
        await scene.say("/stop")
        assert "/stop all" in (await scene.contents(2))[1]
        assert not await reports(scene)
        await scene.say("/stop all")
        assert (await scene.contents(3))[2] == "Stopped."
        await scene.settled()
        assert "cancelled" in (await reports(scene))[0].text


async def test_stop_all_stops_no_chat_of_a_name_like_a_subagents(serve: Serve) -> None:
    forever = Forever()
    async with serve(forever) as scene:
        await scene.say("count", "ann~bob")
        await forever.begun.wait()
        await scene.say("/stop all")
        assert "Nothing is running here" in (await scene.contents(1))[0]
        await scene.say("/stop", "ann~bob")


async def test_a_restart_gives_a_spawned_subagent_no_more_time(serve: Serve) -> None:
    noon, forever = datetime(2026, 1, 1, 12, tzinfo=UTC), Forever()
    script = by_task([SPAWN, "Begun."], [forever])
    async with serve(*[script] * 3, clock=SimulatedClock(noon)) as scene:
        await scene.say("count")
        await forever.begun.wait()
        await scene.contents(1)
    async with serve(Forever(), clock=SimulatedClock(noon + timedelta(minutes=6))) as scene:
        await scene.settled()
        assert "5 minutes are over" in (await reports(scene))[0].text


async def test_while_it_waits_for_an_answer_the_time_of_a_subagent_stands_still(serve: Serve) -> None:
    clock = SimulatedClock(datetime(2026, 1, 1, 12, tzinfo=UTC))
    script = by_task([SPAWN, "Begun."], [call("post", text="7"), "Posted."])
    async with serve(*[script] * 4, clock=clock) as scene:
        await scene.say("count")
        await scene.replies(2)
        clock.wake(timedelta(minutes=6))
        await scene.say("/approve")
        await scene.settled()
        assert (await reports(scene))[1].text.endswith("reports:\nPosted.")


async def test_a_waiting_subagents_question_goes_to_the_owner_and_both_go_on_after_a_restart(serve: Serve) -> None:
    delegating, posting = call("subagent", task="Post it."), call("post", text="7")
    async with serve(delegating, posting, owner="http:boss") as scene:
        await scene.say("go")
        (question,) = await scene.contents(1, "boss")
        assert "For a subagent" in question
    async with serve("Posted.", "Done.", owner="http:boss") as scene:
        await scene.say("/approve", "boss")
        assert await scene.contents(1) == ["Done."]
        assert "posted 7" in said(scene.model, 0)
        assert "Posted." in said(scene.model, 1)


async def test_a_restart_lets_a_waiting_subagent_go_on(serve: Serve) -> None:
    forever = Forever()
    async with serve(call("subagent", task="Look."), call("look"), forever) as scene:
        await scene.say("go")
        await forever.begun.wait()
    async with serve("Empty.", "Done.") as scene:
        assert await scene.contents(1) == ["Done."]
        assert "it is empty" in said(scene.model, 0)


async def test_a_spawned_subagent_whose_time_is_over_leaves_no_open_turn(serve: Serve) -> None:
    clock, forever = SimulatedClock(datetime(2026, 1, 1, 12, tzinfo=UTC)), Forever()
    script = by_task([SPAWN, "Begun."], [forever])
    async with serve(*[script] * 3, clock=clock) as scene:
        await scene.say("count")
        await forever.begun.wait()
        clock.wake(timedelta(minutes=6))
        await scene.settled()
        store = scene.gateway.agent.record.store
        (key,) = [info.key for info in await store.list() if "~" in info.key]
        end = (await store.read(key))[-1]
        assert isinstance(end, EndEntry)
        assert end.stop_reason == "cancelled"
