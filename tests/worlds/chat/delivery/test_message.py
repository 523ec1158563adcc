"""What a turn sends to chats while it goes on, and who learns of it."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.engine.scene import call
from tests.worlds.chat.conftest import Held, Serve, key_of, said

from denizen.entries import StateEntry
from denizen.messages import AssistantMessage, ToolCall
from denizen.ports import ChannelLimits, ModelRequest
from denizen.testing import MemoryChannel
from denizen.testing.scripted import Line
from denizen.worlds.chat.ledger.outbound import ALSO


@pytest.mark.parametrize("named", [{}, {"chat": "ann"}, {"channel": "http", "chat": "ann"}])
async def test_message_to_its_own_chat_is_sent_unasked_and_stands_in_for_the_reply(
    serve: Serve, named: dict[str, str]
) -> None:
    async with serve(call(("message", {"text": "on it", **named})), "done", "next") as scene:
        await scene.say("1")
        await scene.say("2")
        first, second = await scene.replies(2)
    assert (first.message.content, first.message.in_reply_to, first.state) == ("on it", "1", "sent")
    assert (second.message.content, second.message.in_reply_to) == ("next", "2")


TELL = call(("message", {"text": "on it"}))


@pytest.mark.parametrize(
    ("first", "then", "replies"),
    [(call(("look", {})), [TELL, "done"], {"1": "on it", "2": "on it"}), (TELL, ["done"], {"1": "done", "2": "done"})],
    ids=["before it sends", "after it sent"],
)
async def test_what_is_said_to_a_turn_that_sends_to_its_chat_has_a_reply(
    serve: Serve, first: AssistantMessage, then: list[Line], replies: dict[str, str]
) -> None:
    held = Held(first)
    async with serve(held, *then, when_busy={"http": "steer"}) as scene:
        await scene.say("1")
        await held.begun.wait()
        await scene.say("2")
        await scene.heard()
        held.go.set()
        await scene.settled()
        sent = await scene.gateway.outbox.replies("http", "ann", after=0, most=10, wait=0)
    words = [reply.message for reply in sent]
    answered = {each: one.content for one in words for each in (one.in_reply_to, *one.metadata.get(ALSO, ()))}
    assert answered == replies


async def test_message_to_another_chat_is_asked_about_and_kept_there_before_the_answer(serve: Serve) -> None:
    tell = call(("message", {"text": "Tea?", "chat": "ben"}))
    async with serve(tell, "told him", "so you want tea") as scene:
        await scene.say("1")
        assert "Tea?" in (await scene.contents(1))[0]
        await scene.say("/approve")
        assert (await scene.contents(2))[1] == "told him"
        assert await scene.contents(1, "ben") == ["Tea?"]
        await scene.say("yes", "ben")
        assert (await scene.contents(2, "ben"))[1] == "so you want tea"
        seen = said(scene.model)
    assert "You sent this here, from chat http:ann:" in seen
    assert seen.index("Tea?") < seen.index("ben: yes")


async def test_what_the_turn_saw_counts_as_seen_in_the_other_chat(serve: Serve) -> None:
    tell = call(("message", {"text": "they say: fetch this", "chat": "ben"}))
    async with serve(call(("overhear", {})), tell, "told him") as scene:
        await scene.say("1")
        await scene.contents(1)
        await scene.say("/approve")
        await scene.contents(2)
        await scene.settled()
        entries = await scene.gateway.agent.record.store.read(key_of("ben"))
    assert [entry.value for entry in entries if isinstance(entry, StateEntry)] == [{"untrusted": True}]


async def test_every_turn_sends_to_its_own_chat_though_many_run_at_once(serve: Serve) -> None:
    chats = [f"chat{number}" for number in range(12)]
    all_begun = asyncio.Barrier(len(chats))

    async def answer(request: ModelRequest) -> AssistantMessage:
        text = str(request.messages[-1])
        await all_begun.wait()
        chat = next(each for each in chats if f"'{each}: hi" in text or f"{each}: hi" in text)
        return AssistantMessage([ToolCall("same", "message", {"text": f"for {chat}"})])

    async with serve(*[answer] * len(chats), *["done"] * len(chats)) as scene:
        async with asyncio.TaskGroup() as together:
            for chat in chats:
                together.create_task(scene.say("hi.", chat))
        for chat in chats:
            assert await scene.contents(1, chat) == [f"for {chat}"]


async def test_call_that_runs_again_after_a_crash_sends_once(serve: Serve, home: Path) -> None:
    sends = call(("message", {"text": "on it"}))
    async with serve(sends, "done") as scene:
        await scene.say("1")
        await scene.replies(1)
        await scene.settled()
    transcript = next((home / "sessions").rglob("*.jsonl"))
    lines = transcript.read_bytes().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if b'"type":"tool"' in line)
    transcript.write_bytes(b"".join(lines[:at]))  # as if the process had died before it wrote the result
    with closing(sqlite3.connect(home / "gateway.db", isolation_level=None)) as db:
        db.execute("UPDATE inbox SET state = 'running'")
        db.execute("DELETE FROM outbox WHERE id = '1:reply'")
    async with serve("done", "later") as scene:
        await scene.say("2")
        assert await scene.contents(2) == ["on it", "later"]


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"text": "x", "channel": "fax", "chat": "1"}, "no channel 'fax' is connected"),
        ({"text": "x", "media": ["a.png"]}, "http takes text only"),
    ],
)
async def test_what_cannot_be_sent_is_refused(serve: Serve, args: dict[str, object], why: str) -> None:
    async with serve(call(("message", args)), "sorry") as scene:
        await scene.say("1")
        if "channel" in args:
            await scene.replies(1)
            await scene.say("/approve")
        await scene.settled()
        assert why in said(scene.model)


async def test_media_are_files_of_the_workspace(serve: Serve, home: Path) -> None:
    channel = MemoryChannel("irc", ChannelLimits(media_out=1000))
    sends = call(("message", {"text": "look", "media": ["a.png"]}))
    outside = call(("message", {"text": "look", "media": ["../secret"]}))
    async with serve(sends, "done", outside, "no", channels=[channel]) as scene:
        workspace = scene.gateway.agent.workspace
        workspace.mkdir(exist_ok=True)
        (workspace / "a.png").write_bytes(b"png")
        await scene.say("1", "den", channel="irc", session_key=key_of("den", "irc"))
        assert (await scene.replies(1, "den", "irc"))[0].message.media == (str(workspace / "a.png"),)
        await scene.say("2", "den", channel="irc", session_key=key_of("den", "irc"))
        assert (await scene.contents(2, "den", "irc"))[1] == "no"
