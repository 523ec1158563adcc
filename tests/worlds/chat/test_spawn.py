"""`spawn`: subagents in the background of a gateway."""

import asyncio
from collections.abc import Callable
from typing import Any

from tests.worlds.chat.conftest import Serve, key_of, said

from denizen.entries import StateEntry, SystemEntry
from denizen.messages import AssistantMessage, Text, ToolCall
from denizen.ports import ModelRequest


def call(name: str, id: str = "c1", **args: Any) -> AssistantMessage:
    return AssistantMessage([ToolCall(id, name, args)], "scripted", stop_reason="tool_calls")


SPAWN = call("spawn", task="Count the stars.")
Line = AssistantMessage | str


def by_task(parent: list[Line], child: list[Any]) -> Callable[[ModelRequest], Any]:
    """Replies for the chat and for its subagent, in whatever order they ask."""

    def reply(request: ModelRequest) -> Any:
        script = child if "~" in request.session_key else parent
        line = script.pop(0)
        return line(request) if callable(line) else AssistantMessage([Text(line)]) if isinstance(line, str) else line

    return reply


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


async def test_a_spawned_subagent_goes_on_after_a_restart_and_reports_once(serve: Serve) -> None:
    begun = asyncio.Event()

    async def forever(request: ModelRequest) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    before = by_task([SPAWN, "Begun."], [forever])
    async with serve(*[before] * 3) as scene:
        await scene.say("count")
        await begun.wait()
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
