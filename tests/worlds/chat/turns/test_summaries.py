"""Long sessions get smaller between their turns, in nobody's way."""

import asyncio
from pathlib import Path

import pytest
from tests.worlds.chat.conftest import PATIENCE, Scene, Serve, key_of, message, said
from tests.worlds.chat.test_gateway import HeardClock, Held

from denizen.entries import CompactionEntry
from denizen.messages import AssistantMessage, Text, Usage
from denizen.sessions import JsonlStore
from denizen.testing.scripted import Line
from denizen.worlds.chat.ledger.reply_options import ReplyOptions
from denizen.worlds.chat.turns import summaries

ELEVEN: list[Line] = [f"answer {n}" for n in range(11)]
"""With the questions, more than 20 messages."""


async def talk(scene: Scene, turns: int) -> None:
    for n in range(turns):
        await scene.say(f"question {n}")
        await scene.contents(n + 1)


async def compactions(scene: Scene) -> list[CompactionEntry]:
    entries = await scene.gateway.agent.record.store.read(key_of("ann"))
    return [entry for entry in entries if isinstance(entry, CompactionEntry)]


async def summarised(scene: Scene) -> list[CompactionEntry]:
    async with asyncio.timeout(PATIENCE):
        await scene.gateway.runner.summaries.idle()
    return await compactions(scene)


async def test_session_of_more_than_twenty_messages_is_summarised_down_to_the_last_four(serve: Serve) -> None:
    async with serve(*ELEVEN, "We talked.", "later") as scene:
        await talk(scene, 10)
        assert not await compactions(scene)
        await scene.say("question 10")
        await scene.contents(11)
        assert [entry.summary for entry in await summarised(scene)] == ["We talked."]
        await scene.say("and now?")
        await scene.contents(12)
        shown = [each.text.partition("\n\n<time>")[0] for each in scene.model.requests[-1].messages]
        assert shown == [
            "[Conversation summary]\nWe talked.",
            *("question 9", "answer 9", "question 10", "answer 10"),
            "and now?",
        ]


async def test_turns_go_on_while_the_summary_is_made_and_no_second_one_begins(serve: Serve) -> None:
    held = Held("We talked.")
    async with serve(*ELEVEN, held, "12", "13") as scene:
        await talk(scene, 11)
        await held.begun.wait()
        await scene.say("again")
        await scene.say("once more")
        assert (await scene.contents(13))[11:] == ["12", "13"]
        assert "question 0" in said(scene.model)
        held.go.set()
        await summarised(scene)
        assert len(scene.model.requests) == 14, "one summary"


async def test_summary_waits_for_a_session_that_is_open_elsewhere(serve: Serve, home: Path) -> None:
    held, clock = Held("We talked."), HeardClock()
    async with serve(*ELEVEN, held, clock=clock) as scene:
        await talk(scene, 11)
        await held.begun.wait()
        session = await JsonlStore(home / "sessions", clock=clock).open(key_of("ann"))
        held.go.set()
        await clock.waits.get()
        await session.close()
        assert [entry.summary for entry in await summarised(scene)] == ["We talked."]


async def test_summary_is_taken_in_by_the_turn_that_has_begun(serve: Serve) -> None:
    summary, reply = Held("We talked."), Held("12")
    async with serve(*ELEVEN, summary, reply, "13") as scene:
        await talk(scene, 11)
        await summary.begun.wait()
        await scene.say("again")
        await reply.begun.wait()
        summary.go.set()
        await summarised(scene)
        reply.go.set()
        await scene.contents(12)
        await scene.say("and now?")
        await scene.contents(13)
        shown = said(scene.model)
        assert "We talked." in shown
        assert "again" in shown
        assert "question 0" not in shown


async def test_session_that_fills_the_window_is_summarised_however_few_its_messages(serve: Serve) -> None:
    full = AssistantMessage([Text("2")], usage=Usage(input=190_000, output=1))
    async with serve("1", "2", "3", full, "We talked.") as scene:
        await talk(scene, 4)
        assert (await summarised(scene))[0].summary == "We talked."


async def test_message_may_say_that_it_is_no_reason_for_a_summary(serve: Serve) -> None:
    async with serve(*ELEVEN, "We talked.") as scene:
        await talk(scene, 10)
        await scene.gateway.accept(ReplyOptions(enable_summary=False).put_in(message("question 10")))
        await scene.contents(11)
        assert len(scene.model.requests) == 11


async def test_after_a_summary_that_failed_the_next_is_made_when_the_session_is_longer(serve: Serve) -> None:
    replies = [f"reply {n}" for n in range(10)]
    async with serve(*ELEVEN, "", *replies, "last", "We talked.") as scene:
        await talk(scene, 11)
        assert not await summarised(scene)
        for n in range(11, 22):
            assert len(scene.model.requests) == n + 1, "no further summary"
            await scene.say(f"question {n}")
            await scene.contents(n + 1)
        assert [entry.summary for entry in await summarised(scene)] == ["We talked."]


async def test_summary_that_takes_too_long_is_given_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(summaries, "TIMEOUT_S", 0.0)
    async with serve(*ELEVEN, Held("never"), "12") as scene:
        await talk(scene, 11)
        assert not await summarised(scene)
        assert "isn't summarised" in caplog.text
