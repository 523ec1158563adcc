"""One message, one turn, one reply; and what a person, a program or a failure may do meanwhile."""

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.disk_calls import disk_calls
from tests.documents import LINE, PAPER
from tests.engine.scene import call
from tests.worlds.chat.conftest import PATIENCE, Held, Serve, SimulatedClock, key_of, message, said
from tests.worlds.chat.http.test_http import reached

from denizen.entries import StateEntry, SystemEntry
from denizen.errors import ModelError
from denizen.messages import AssistantMessage, Image, Text, UserMessage
from denizen.models.failover import Failover
from denizen.models.profiles import Candidate
from denizen.ports import Accept, Answer, OutboundMessage, Stop
from denizen.sessions import JsonlStore
from denizen.sessions.jsonl import ACKNOWLEDGED_ELSEWHERE
from denizen.testing import FakeClock, MemoryChannel, ScriptedModel
from denizen.worlds.chat.delivery.last_chat import LastChatFile
from denizen.worlds.chat.http.status import status_of
from denizen.worlds.chat.ledger import ledger
from denizen.worlds.chat.ledger.ledger import Claim, LedgerConnection
from denizen.worlds.chat.ledger.outbound import add_outbound
from denizen.worlds.chat.ledger.reply_options import DEFAULT_RESPONSE, ReplyOptions, with_attachments
from denizen.worlds.chat.turns.queue import HELD_RETRY_S, LedgerTurn

ASKS = call(("post", {"text": "hello"}))


class HeardClock(FakeClock):
    """Tells of each sleep."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: asyncio.Queue[float] = asyncio.Queue()

    async def sleep(self, seconds: float) -> None:
        self.waits.put_nowait(seconds)
        await super().sleep(seconds)


async def test_sessions_that_nobody_used_for_so_long_are_deleted_each_day(serve: Serve) -> None:
    clock = FakeClock()
    async with serve(clock=clock, config={"retention": {"session_days": 2}}) as scene:
        store = scene.gateway.agent.record.store
        await (await store.open("old")).close()
        async with asyncio.timeout(PATIENCE):
            while await store.list():
                await clock.sleep(86_400.0)


async def test_session_with_a_message_that_waits_for_its_turn_is_not_deleted(serve: Serve) -> None:
    clock, held = FakeClock(), Held("late")
    async with serve("first", held, "second", clock=clock, config={"retention": {"session_days": 2}}, turns=1) as scene:
        store = scene.gateway.agent.record.store
        await (await store.open("old")).close()
        await scene.say("Is it there?", "ben")
        await scene.replies(1, "ben")
        await scene.say("Wait.")
        await held.begun.wait()
        await scene.say("And now?", "ben")
        async with asyncio.timeout(PATIENCE):
            while "old" in str(await store.list()):
                await clock.sleep(86_400.0)
        held.go.set()
        assert await scene.contents(2, "ben") == ["first", "second"]
        assert "Is it there?" in str(scene.model.requests[-1])


async def test_a_turn_is_synced_before_its_message_is_over(serve: Serve, tmp_path: Path) -> None:
    store = JsonlStore(tmp_path, clock=FakeClock(), synced=ACKNOWLEDGED_ELSEWHERE)
    with disk_calls() as calls:
        async with serve("hi", "hi again", store=store) as scene:
            await scene.say("1")
            await scene.replies(1)
            calls.clear()
            await scene.say("2")
            await scene.replies(2)
            assert "fsync" in calls


async def test_messages_of_a_chat_are_answered_in_order(serve: Serve) -> None:
    async with serve("first", "second") as scene:
        await scene.say("1")
        await scene.say("2")
        assert not await scene.gateway.accept(message("1")), "it was accepted before"
        replies = await scene.replies(2)
    assert [(reply.seq, reply.message.in_reply_to, reply.message.content) for reply in replies] == [
        (1, "1", "first"),
        (2, "2", "second"),
    ]


async def test_chats_are_served_side_by_side(serve: Serve) -> None:
    held = Held("late")
    async with serve(held, "soon") as scene:
        await scene.say("1")
        await held.begun.wait()
        await scene.say("2", "ben")
        assert await scene.contents(1, "ben") == ["soon"]
        held.go.set()
        assert await scene.contents(1) == ["late"]


async def test_sixteen_slow_chats_do_not_hold_up_another(serve: Serve) -> None:
    slow = [Held("late") for _ in range(16)]
    async with serve(*slow, "soon") as scene:
        for number, held in enumerate(slow):
            await scene.say("hi", f"slow{number}")
            await held.begun.wait()
        await scene.say("hi", "quick")
        assert await scene.contents(1, "quick") == ["soon"]
        for held in slow:
            held.go.set()


async def test_empty_answer_is_replaced_by_the_default(serve: Serve) -> None:
    async with serve(AssistantMessage([Text("")], stop_reason="end"), AssistantMessage([])) as scene:
        await scene.say("1")
        await scene.say("2")
        assert await scene.contents(2) == [DEFAULT_RESPONSE] * 2


async def test_refusal_is_not_replaced_by_the_default(serve: Serve) -> None:
    async with serve(AssistantMessage([], stop_reason="refusal")) as scene:
        await scene.say("1")
        assert await scene.contents(1) == ["The model refused to answer."]


async def test_message_without_history_sees_nothing_of_earlier_turns(serve: Serve) -> None:
    async with serve("noted", "none") as scene:
        await scene.say("the word is plum")
        await scene.contents(1)
        await scene.gateway.accept(ReplyOptions(history=False).put_in(message("which word?")))
        await scene.contents(2)
        assert "plum" not in said(scene.model)


async def test_system_message_is_kept_for_the_next_turn_and_answered_by_nobody(serve: Serve, home: Path) -> None:
    async with serve("I see") as scene:
        await scene.say("The subagent is done.", channel="system", session_key=key_of("ann"))
        await scene.say("well?")
        assert await scene.contents(1) == ["I see"]
        assert "The subagent is done." in said(scene.model)
        assert len(scene.model.requests) == 1
        entries = await scene.gateway.agent.record.store.read(key_of("ann"))
        kept = [entry for entry in entries if isinstance(entry, SystemEntry)]
        assert [entry.message_id for entry in kept] == ["The subagent is done."]


async def test_system_message_that_comes_again_after_a_crash_is_kept_once(serve: Serve) -> None:
    async with serve() as scene:
        report = message("done", channel="system")
        for attempt in (1, 2):
            assert await scene.gateway.runner.run(LedgerTurn(Claim("", 1, report, attempt, 0, 0))) is None
        entries = await scene.gateway.agent.record.store.read(report.session_key)
        assert [type(entry) for entry in entries].count(SystemEntry) == 1


async def test_message_that_keeps_failing_is_given_up_with_a_reason_and_the_session_goes_on(serve: Serve) -> None:
    failures = [ModelError("the key is wrong", kind="auth", status=401)] * 2
    async with serve(*failures, "fine", attempts=2, clock=FakeClock()) as scene:
        await scene.say("1")
        await scene.say("2")
        first, second = await scene.replies(2)
        assert (first.state, first.message.in_reply_to) == ("failed", "1")
        assert "the key is wrong" in first.message.content
        assert (second.state, second.message.content) == ("sent", "fine")


async def test_failure_that_passes_is_tried_again(serve: Serve) -> None:
    async with serve(ModelError("overloaded"), "fine", clock=FakeClock()) as scene:
        await scene.say("1")
        assert await scene.contents(1) == ["fine"]


async def test_chat_hears_once_that_its_reply_waits_for_the_model(serve: Serve) -> None:
    busy = ModelError("overloaded", kind="rate_limit", status=529, retry_after=20.0)
    model = Failover([Candidate("test:busy", ScriptedModel([busy, busy, "at last", busy, "quiet"]))], FakeClock())
    async with serve(asked=model) as scene:
        await scene.say("1")
        told, reply = await scene.replies(2)
        assert told.message.content == (
            "I can't answer yet; I keep trying. overloaded: trying again in 20 s (the provider asks for that)"
        )
        assert (told.message.in_reply_to, reply.message.in_reply_to, reply.message.content) == ("", "1", "at last")
        assert await scene.ask("2", key_of("ben")) == "quiet"
        assert not await scene.gateway.outbox.replies("cli", "direct", after=0, most=9, wait=0), "a program asked"


async def test_retry_is_not_put_off_by_a_clock_that_is_set_back(serve: Serve) -> None:
    clock = SimulatedClock(datetime(2026, 1, 2, tzinfo=UTC))
    async with serve(ModelError("overloaded"), "fine", clock=clock) as scene:
        await scene.say("1")
        async with asyncio.timeout(PATIENCE):
            for time in (-timedelta(days=1), timedelta(seconds=HELD_RETRY_S)):
                while len(clock.sleepers) < 2:
                    await scene.gateway.database.run(ledger.next_due)
                clock.wake(time)
            assert await scene.contents(1) == ["fine"]


async def test_message_waits_for_a_session_that_is_open_elsewhere_and_that_is_no_failure(serve: Serve) -> None:
    clock = HeardClock()
    async with serve("at last", clock=clock, attempts=1) as scene:
        session = await scene.gateway.agent.open(key_of("ann"))
        await scene.say("1")
        for _ in range(5):
            await clock.waits.get()
        assert not scene.model.requests
        await scene.gateway.agent.leave(session)
        assert await scene.contents(1) == ["at last"]


async def test_answer_of_a_second_attempt_is_not_asked_for_again_after_a_crash(serve: Serve) -> None:
    async with serve(ModelError("down"), "plum", "pear") as scene:
        await scene.say("a fruit?")
        await scene.replies(1)
        again = await scene.gateway.runner.run(LedgerTurn(Claim("", 1, message("a fruit?"), 3, 1, 1)))
        assert isinstance(again, OutboundMessage)
        assert again.content == "plum"
        assert len(scene.model.requests) == 2


async def test_steering_channel_says_a_message_to_the_running_turn(serve: Serve) -> None:
    held = Held(ASKS)
    async with serve(held, "both done", "third", when_busy={"http": "steer"}) as scene:
        await scene.say("1")
        await held.begun.wait()
        await scene.say("make it short")
        await scene.heard()
        held.go.set()
        await scene.replies(1)
        await scene.say("/approve")
        replies = await scene.replies(2)
        assert replies[1].message.content == "both done"
        assert replies[1].message.metadata == {"also_in_reply_to": ["make it short"]}
        assert "make it short" in said(scene.model)
        await scene.say("3")
        assert (await scene.contents(3))[2] == "third"


@pytest.mark.parametrize(
    ("more", "shown"),
    [({"media": ["roof.png"]}, "roof.png"), ({"metadata": with_attachments(message(""), [PAPER]).metadata}, LINE)],
    ids=["a path", "a document"],
)
async def test_message_with_attachments_waits_for_a_turn_of_its_own(
    serve: Serve, more: Mapping[str, Any], shown: str
) -> None:
    held = Held("first")
    async with serve(held, "seen", when_busy={"http": "steer"}) as scene:
        await scene.say("1")
        await held.begun.wait()
        await scene.say("look", **more)
        await scene.heard()
        held.go.set()
        assert await scene.contents(2) == ["first", "seen"]
        assert shown in said(scene.model)


NOTES = {
    "mcp": {"notes": {"command": sys.executable, "args": [str(Path(__file__).parents[2] / "data/mcp/prompts.py")]}}
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


async def test_prompt_of_an_mcp_server_is_said_and_a_wrong_one_refused(serve: Serve, project: Path) -> None:
    async with serve("reviewed", config=NOTES, workspace=project) as scene:
        await scene.say("/notes:review main.py")
        await scene.say("/notes:other")
        assert await scene.contents(2) == ["reviewed", "the MCP server notes has no prompt 'other'; available: review"]
        assert "Review main.py, and look at everything." in said(scene.model)
        entries = await scene.gateway.agent.record.store.read(key_of("ann"))
    assert {"untrusted": True} in [entry.value for entry in entries if isinstance(entry, StateEntry)]


async def test_prompt_of_an_mcp_server_waits_for_its_own_turn(serve: Serve, project: Path) -> None:
    held = Held("first")
    async with serve(held, "reviewed", config=NOTES, workspace=project, when_busy={"http": "steer"}) as scene:
        await scene.say("1")
        await held.begun.wait()
        await scene.say("/notes:review main.py")
        held.go.set()
        assert await scene.contents(2) == ["first", "reviewed"]
        assert "Review main.py, and look at everything." in said(scene.model)


@pytest.mark.parametrize(("words", "result"), [("/approve", "posted hello"), ("/deny\nnot today", "not today")])
async def test_question_is_asked_in_the_chat_and_answered_there(serve: Serve, words: str, result: str) -> None:
    async with serve(ASKS, "done", "later") as scene:
        await scene.say("post hello")
        await scene.say("and then?")
        question = (await scene.replies(1))[0].message
        assert question.content.count("hello") == 1, "the arguments are shown once"
        assert question.content.startswith('Allow post(text="hello")?')
        assert {"call_id", "word", "answered_by"} <= question.metadata.keys()
        await scene.say(words)
        assert (await scene.contents(3))[1:] == ["done", "later"]
        assert result in said(scene.model, 1)


async def test_question_shows_the_arguments_once_in_whatever_order_they_came(serve: Serve) -> None:
    async with serve(call(("message", {"text": "hello", "chat": "bob"}))) as scene:
        await scene.say("tell bob")
        assert (await scene.contents(1))[0].count("hello") == 1


async def test_notice_of_a_turn_is_logged(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    async with serve("hi", config={"hooks": [{"event": "turn_end", "command": "exit 7"}]}) as scene:
        await scene.say("hello")
        await scene.settled()
    [record] = [record for record in caplog.records if "exit 7" in record.getMessage()]
    assert record.levelname == "WARNING"
    assert key_of("ann") in record.getMessage()


async def test_chats_begin_with_the_files_as_they_are_when_the_gateway_starts(serve: Serve) -> None:
    async with serve("one") as scene:
        await scene.say("hi")
        await scene.contents(1)
        soul = scene.gateway.agent.config.agent.workspace_dir / "SOUL.md"
    soul.write_text("Be kind.")
    async with serve("two", "three") as scene:
        await scene.say("and now?")
        await scene.contents(2)
        soul.write_text("Be brief.")
        await scene.say("still?")
        await scene.contents(3)
        seen = [request.system for request in scene.model.requests]
    assert [("Be kind." in each, "Be brief." in each) for each in seen] == [(True, False)] * 2


async def test_question_goes_to_the_owner_and_outlasts_a_restart(serve: Serve) -> None:
    async with serve(ASKS, owner="http:boss") as scene:
        await scene.say("post hello")
        await scene.replies(1, "boss")
    async with serve("done", owner="http:boss") as scene:
        await scene.say("/approve", "mallory")
        assert await scene.contents(1, "mallory") == ["Nothing is waiting for approval here."]
        assert not scene.model.requests
        await scene.say("/approve", "boss")
        assert await scene.contents(1) == ["done"]
        assert (await scene.contents(2, "boss"))[1] == "Approved."
        assert "posted hello" in said(scene.model)


async def test_question_is_answered_after_many_later_messages_to_its_chat(serve: Serve) -> None:
    def send(db: LedgerConnection) -> None:
        for number in range(200):
            add_outbound(db, OutboundMessage("http", "ann", "news", id=f"news {number}"), "sent")

    async with serve(ASKS, "done") as scene:
        await scene.say("post hello")
        await scene.replies(1)
        await scene.gateway.database.run(send)
        await scene.say("/approve")
        assert (await scene.contents(202))[-1] == "done"


async def test_question_that_nobody_answers_in_time_is_refused(serve: Serve) -> None:
    async with serve(ASKS, "done without", clock=FakeClock()) as scene:
        await scene.say("post hello")
        assert (await scene.contents(2))[1] == "done without"
        assert "nobody answered in time" in said(scene.model)


async def test_answer_to_another_call_reaches_nobody(serve: Serve) -> None:
    async with serve(ASKS) as scene:
        await scene.say("post hello")
        [question] = await scene.replies(1)
        assert not await scene.gateway.answer(key_of("ann"), Answer("other", allow=True))
        assert not await scene.gateway.answer(key_of("ben"), Answer(question.message.metadata["call_id"], allow=True))


async def test_stop_ends_the_turn_and_says_so(serve: Serve) -> None:
    held = Held("never")
    async with serve(held, "next") as scene:
        await scene.say("1")
        await held.begun.wait()
        await scene.gateway.queue.control(key_of("ann"), Stop())
        assert await scene.contents(1) == ["Stopped."]
        await scene.say("2")
        assert (await scene.contents(2))[1] == "next"


async def test_turn_that_is_cut_short_by_the_end_goes_on_at_the_next_start(serve: Serve) -> None:
    held = Held("never")
    async with serve(held) as scene:
        await scene.say("1")
        await held.begun.wait()
    async with serve("after all") as scene:
        assert await scene.contents(1) == ["after all"]


async def test_direct_call_gets_the_reply_and_nothing_is_sent(serve: Serve) -> None:
    channel = MemoryChannel("irc")
    async with serve("to you alone", channels=[channel]) as scene:
        assert await scene.ask("hi", key_of("#den", "irc"), channel="irc", chat="#den") == "to you alone"
        assert not channel.sent


async def test_last_chat_from_outside_is_kept(serve: Serve, home: Path) -> None:
    async with serve("1", "2", "3") as scene:
        await scene.say("a", "ann")
        await scene.contents(1)
        await scene.say("b", "shell", channel="cli")
        await scene.contents(1, "shell", "cli")
    state = msgspec.json.decode((home / "state.json").read_bytes())
    assert state == {"last_channel": "http", "last_chat": "ann"}


async def test_last_of_many_chats_is_kept_while_the_gateway_runs(serve: Serve, home: Path) -> None:
    async with serve(*["hi"] * 3, clock=FakeClock()) as scene:
        for chat in ("ann", "ben", "cleo"):
            await scene.say("a", chat)
        async with asyncio.timeout(PATIENCE):
            while LastChatFile(home, FakeClock()).now.last_chat != "cleo":
                await scene.gateway.database.run(lambda _: None)


async def test_message_is_taken_in_though_the_last_chat_cannot_be_kept(serve: Serve, home: Path) -> None:
    async with serve("1") as scene:
        (home / "state.json").mkdir()
        await scene.say("a")
        assert await scene.contents(1) == ["1"]
        assert (await status_of(scene.gateway)).last_chat == "ann"


async def test_channel_brings_messages_and_gets_their_replies_in_pieces_that_it_takes(serve: Serve) -> None:
    from denizen.ports import ChannelLimits

    channel = MemoryChannel("irc", ChannelLimits(length=12))
    async with serve("one two three four", channels=[channel]) as scene:
        channel.write("count")
        reply = (await scene.replies(1, "home", "irc"))[0]
        while (await scene.replies(1, "home", "irc"))[0].state != "sent":
            pass
        assert reply.message.content == "one two three four"
    assert [each.content for each in channel.sent.values()] == ["one two", "three four"]


class BrokenChannel(MemoryChannel):
    """Fails twice before it receives."""

    failures = 2

    async def receive(self, accept: Accept) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("the line is down")
        await super().receive(accept)


async def test_channel_that_fails_is_started_again_and_the_others_go_on(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    channel = BrokenChannel("irc")
    async with serve("hello", "hello", channels=[channel], clock=FakeClock()) as scene:
        await scene.say("1")
        channel.write("hi")
        assert await scene.contents(1) == ["hello"]
        assert await scene.contents(1, "home", "irc") == ["hello"]
    assert caplog.text.count("the line is down") == 2


def test_default_response_is_that_of_the_specification() -> None:
    assert DEFAULT_RESPONSE == "I've finished, and have nothing to add."


async def test_chats_whose_ids_differ_in_case_alone_share_no_session(serve: Serve, home: Path) -> None:
    async with serve("noted", "none") as scene, reached(scene, home) as client:
        await client.post(chat="Team", content="the word is plum")
        await scene.contents(1, "Team")
        await client.post(chat="team", content="which word?")
        await scene.contents(1, "team")
        assert "plum" not in said(scene.model)


async def test_session_of_several_chats_is_continued_by_the_one_that_wrote_in_it_last(serve: Serve, home: Path) -> None:
    async with serve("hello", call(("post", {"text": "plum"}))) as scene:
        for chat in ("team", "Team"):  # as an earlier version kept them
            await scene.say("the word is plum", chat, session_key=key_of("team"))
            await scene.replies(1, chat)
    async with serve("posted", "It was plum.", "none") as scene, reached(scene, home) as client:
        await client.post(chat="Team", content="/approve")
        assert (await scene.contents(2, "Team"))[1] == "posted", "its question is still open"
        await client.post(chat="Team", content="which word?")
        assert (await scene.contents(3, "Team"))[2] == "It was plum."
        assert "plum" in said(scene.model)
        await client.post(chat="team", content="which word?")
        assert (await scene.contents(2, "team"))[1] == "none"
        assert "plum" not in said(scene.model)
        keys = {each.key for each in await scene.gateway.agent.record.store.list()}
        assert keys == {key_of("team"), key_of("%54eam")}


PICTURE = Image("image/png", b"\x89PNG not one")


def refused() -> ModelError:
    return ModelError("test: Could not process image (HTTP 400)", kind="unknown", status=400)


async def test_content_that_the_provider_refuses_ends_its_turn_and_not_the_chat(serve: Serve) -> None:
    async with serve("hi", refused(), "fine", clock=FakeClock()) as scene:
        await scene.say("hello")
        await scene.gateway.accept(with_attachments(message("look"), [PICTURE]))
        await scene.say("and now?")
        replies = await scene.replies(3)
        assert [each.state for each in replies] == ["sent", "failed", "sent"]
        assert "Could not process image (HTTP 400)" in replies[1].message.content
        assert "is left out of the conversation from now on" in replies[1].message.content
        assert len(scene.model.requests) == 3, "it is not tried again"
        users = [each for each in scene.model.requests[-1].messages if isinstance(each, UserMessage)]
        assert PICTURE not in users[1].content
        assert [each.text.partition("\n\n<time>")[0] for each in users] == [
            "hello",
            "look[Left out: the provider refused it.]",
            "and now?",
        ]


async def test_text_and_results_that_the_provider_refuses_are_left_out_too(serve: Serve) -> None:
    async with serve(refused(), call(("look", {})), refused(), "fine") as scene:
        for text in ("bad words", "look around", "and now?"):
            await scene.say(text)
        await scene.replies(3)
        seen = said(scene.model)
        assert '"text":"bad words"' not in seen
        assert "look around" in seen, "it was taken"
        assert "it is empty" not in seen
        assert "and now?" in seen


async def test_media_of_the_whole_chat_are_left_out_where_nothing_else_helps(serve: Serve) -> None:
    async with serve("a cat", refused(), refused(), "fine") as scene:
        await scene.gateway.accept(with_attachments(message("what is it?"), [PICTURE]))
        for text in ("1", "2", "3"):
            await scene.say(text)
        await scene.replies(4)
        seen = [each.content for each in scene.model.requests[-2].messages]
        assert any(PICTURE in content for content in seen)
        seen = [each.content for each in scene.model.requests[-1].messages]
        assert not any(PICTURE in content for content in seen)


async def test_received_files_and_mail_threads_are_removed_unless_a_message_is_kept(serve: Serve, home: Path) -> None:
    media, threads = home / "channels" / "email" / "media", home / "channels" / "email" / "threads"
    files = [media / "kept.png", media / "new.png", media / "old.png", threads / "old.json"]
    for folder in (media, threads):
        folder.mkdir(parents=True)
    async with serve("thanks") as scene:
        await scene.say("look", media=(str(files[0]),))
        await scene.settled()
    long_ago = time.time() - 31 * 86_400
    for each in files:
        each.touch()
        if each.name != "new.png":
            os.utime(each, (long_ago, long_ago))
    async with serve() as scene, asyncio.timeout(PATIENCE):
        while files[2].exists() or files[3].exists():
            await scene.gateway.database.run(lambda _: None)
    assert [each.exists() for each in files] == [True, True, False, False]
