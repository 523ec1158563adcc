"""Sender access: pairing, groups, and people on several channels."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from tests.worlds.chat.conftest import PATIENCE, OpenDatabase, Scene, Serve
from tests.worlds.chat.ledger.test_questions import ASKS, word_of

from denizen.errors import ConfigError
from denizen.ports import ChannelSettings, InboundMessage
from denizen.sessions import SessionKey
from denizen.testing import FakeClock, MemoryChannel
from denizen.worlds.chat.ledger import pairings
from denizen.worlds.chat.ledger.pairings import CODE_LIFETIME_S, MAX_OPEN_CODES, MAX_OPEN_CODES_PER_CHANNEL

NOBODY = ChannelSettings()


def written(content: str, sender: str, channel: str = "memory", **fields: Any) -> InboundMessage:
    """A message in the sender's direct chat, or in the group `den`."""
    chat = fields.pop("chat", "den" if fields.get("is_group") else sender)
    key = SessionKey(chat, "group" if fields.get("is_group") else "direct", channel)
    return InboundMessage(channel, chat, sender, content, str(key), **fields)


async def accepted(scene: Scene, *messages: InboundMessage) -> list[bool]:
    return [await scene.gateway.accept(each) for each in messages]


async def code_of(scene: Scene, chat: str, number: int = 1) -> str:
    """The code in the chat's message of that number."""
    text = (await scene.contents(number, chat, "memory"))[-1]
    found = re.search(r"code is ([A-Z]{6}):", text)
    assert found, text
    return found[1]


async def test_empty_allow_list_lets_nobody_reach_a_model_a_command_or_a_session(serve: Serve) -> None:
    async with serve(channels=[MemoryChannel()], allow=NOBODY) as scene:
        assert await accepted(scene, written("hello", "eve"), written("/help", "eve")) == [False, False]
        await code_of(scene, "eve")
        await scene.settled()
        assert not scene.model.requests
        assert not await scene.gateway.agent.record.store.list()


async def test_stranger_gets_only_one_code_an_hour(serve: Serve) -> None:
    clock = FakeClock()
    async with serve(channels=[MemoryChannel()], allow=NOBODY, clock=clock) as scene:
        await accepted(scene, *(written(f"hello {number}", "eve") for number in range(20)))
        first = await code_of(scene, "eve")
        await clock.sleep(CODE_LIFETIME_S)
        assert await scene.gateway.access.approve(first) is None, "it has expired"
        await accepted(scene, written("still me", "eve"))
        assert await code_of(scene, "eve", 2) != first


async def test_approved_sender_is_greeted_and_answered_until_revoked(serve: Serve) -> None:
    channel = MemoryChannel()
    async with serve("welcome", channels=[channel], allow=NOBODY) as scene:
        await accepted(scene, written("hello", "eve"))
        code = await code_of(scene, "eve")
        assert await scene.gateway.access.approve(code.lower())
        assert "paired" in (await scene.contents(2, "eve", "memory"))[-1]
        assert await accepted(scene, written("hello again", "eve")) == [True]
        assert (await scene.contents(3, "eve", "memory"))[-1] == "welcome"
        async with asyncio.timeout(PATIENCE):
            while len(channel.sent) < 3:
                await scene.gateway.database.run(lambda _: None)
        assert await scene.gateway.access.revoke("memory:eve")
        assert await accepted(scene, written("and now?", "eve")) == [False]


async def test_only_files_of_those_who_may_speak_are_fetched(serve: Serve) -> None:
    fetched = list[str]()

    async def fetch(message: InboundMessage) -> InboundMessage:
        fetched.append(message.sender)
        return replace(message, media=("/tmp/cat.png",))

    allow = ChannelSettings(allow=["ann"])
    async with serve("thanks", channels=[MemoryChannel()], allow=allow) as scene:
        messages = [
            written("look", "eve"),
            written("look", "ann", is_group=True, is_addressed=False),
            written("look", "ann", vouched_for="nothing"),
            written("look", "ann"),
        ]
        assert [await scene.gateway.accept(each, fetch) for each in messages] == [False, False, False, True]
        assert fetched == ["ann"]
        await scene.contents(2, "ann", "memory")
        assert "[attached: /tmp/cat.png]" in str(scene.model.requests[0].messages)


async def test_message_with_neither_text_nor_file_is_not_answered(serve: Serve) -> None:
    channel = MemoryChannel()
    async with serve("hello", channels=[channel]) as scene:
        for content in ("", " \n", "hi"):
            channel.write(content)
        assert await scene.contents(1, "home", "memory") == ["hello"]
        await scene.settled()
        assert len(scene.model.requests) == 1


async def test_few_codes_are_open_at_once(open_database: OpenDatabase) -> None:
    database = open_database()
    try:
        for number in range(5):
            for channel in ("irc", "matrix", "xmpp"):
                ask = partial(pairings.request_code, message=written("hi", f"eve{number}", channel), now=1000.0)
                await database.run(ask)
        found = await database.read(partial(pairings.pairings, now=1001.0))
        assert len(found) == MAX_OPEN_CODES
        assert max(sum(each.channel == name for each in found) for name in ("irc", "matrix", "xmpp")) <= (
            MAX_OPEN_CODES_PER_CHANNEL
        )
        assert await database.run(partial(pairings.approve, code=found[0].code, now=1002.0))
        assert await database.read(partial(pairings.is_paired, channel=found[0].channel, sender=found[0].sender))
        assert not await database.read(partial(pairings.is_paired, channel="other", sender=found[0].sender))
        assert [each.code for each in await database.read(partial(pairings.pairings, now=9e9))] == [found[0].code]
        assert await database.run(partial(pairings.revoke, who=f"{found[0].channel}:{found[0].sender}"))
        assert not await database.run(partial(pairings.revoke, who=f"{found[0].channel}:{found[0].sender}"))
    finally:
        database.close()


async def test_only_owners_approve_codes_in_any_of_their_chats(serve: Serve) -> None:
    allow = ChannelSettings(allow=["ann"])
    people = {"boss": {"memory": "boss", "owner": True}}
    async with serve(channels=[MemoryChannel()], allow=allow, config={"people": people}) as scene:
        await accepted(scene, written("hello", "eve"))
        code = await code_of(scene, "eve")
        await accepted(scene, written(f"/pair {code}", "ann"), written("/pair", "boss"))
        assert await scene.contents(1, "ann", "memory") == ["Only the owner may use /pair."]
        assert f"{code}: memory:eve" in (await scene.contents(1, "boss", "memory"))[0]
        await accepted(scene, written(f"/pair {code}", "boss"))
        assert (await scene.contents(2, "boss", "memory"))[-1] == "memory:eve may speak now."


@pytest.mark.parametrize(
    ("groups", "is_addressed", "answered"),
    [("addressed", True, True), ("addressed", False, False), ("all", False, True), ("none", True, False)],
)
async def test_groups_setting_decides_which_messages_are_answered(
    serve: Serve, groups: Any, is_addressed: bool, answered: bool
) -> None:
    allow = ChannelSettings(allow=["ann"], groups=groups)
    async with serve("hi", channels=[MemoryChannel()], allow=allow) as scene:
        asked = written("hello", "ann", is_group=True, is_addressed=is_addressed)
        assert await accepted(scene, asked) == [answered]


async def test_name_that_anybody_can_take_is_not_admitted_and_hears_why_once(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"people": {"boss": {"memory": "boss", "owner": True}}}
    settings: dict[str, Any] = {"allow": ChannelSettings(allow=["ann"]), "owner": ["memory:ceo"], "config": given}
    async with serve("hi", channels=[MemoryChannel()], **settings) as scene:
        for name in ("ann", "boss", "ceo"):
            messages = [written(text, name, vouched_for="nothing") for text in ("hello", "/pair", "/approve k4")]
            assert await accepted(scene, *messages) == [False, False, False]
            [why] = await scene.contents(1, name, "memory")
            assert "anybody can take your name" in why
        assert caplog.text.count("isn't answered: anybody can take that name") == 3
        await scene.settled()
        assert not scene.model.requests


async def test_paired_name_that_anybody_can_take_is_admitted_once_it_is_proven(serve: Serve) -> None:
    async with serve("hi", channels=[MemoryChannel()], allow=NOBODY) as scene:
        await accepted(scene, written("hello", "eve"))
        assert await scene.gateway.access.approve(await code_of(scene, "eve"))
        assert await accepted(scene, written("me", "eve", vouched_for="nothing")) == [False]
        assert await accepted(scene, written("me again", "eve", vouched_for="sender")) == [True]


async def test_strangers_with_names_that_anybody_can_take_hear_why_once_an_hour(serve: Serve) -> None:
    clock = FakeClock()
    async with serve(channels=[MemoryChannel()], allow=NOBODY, clock=clock) as scene:
        for hour in range(2):
            strangers = [written("hello", f"eve{hour}{number}", vouched_for="nothing") for number in range(5)]
            in_group = written("hello", "eve", is_group=True, vouched_for="nothing")
            await accepted(scene, in_group, *strangers, *strangers)
            await clock.sleep(CODE_LIFETIME_S)
        chats = await scene.gateway.database.read(lambda db: db.execute("SELECT chat FROM outbox").fetchall())
        assert sorted(chats) == [("eve00",), ("eve10",)]
        assert not await scene.gateway.access.pairings()


async def test_owners_chat_counts_only_if_it_is_known_to_be_the_senders(serve: Serve) -> None:
    settings: dict[str, Any] = {"allow": ChannelSettings(allow=["account:eve"]), "owner": ["memory:ann"]}
    async with serve("hi", channels=[MemoryChannel()], **settings) as scene:
        await accepted(scene, written("/pair", "account:eve", chat="ann", vouched_for="sender"))
        await accepted(scene, written("/pair", "account:ann", chat="ann"))
        refused, listed = await scene.contents(2, "ann", "memory")
        assert (refused, listed) == ("Only the owner may use /pair.", "Nobody is waiting to be paired.")


async def test_members_of_a_group_who_are_not_allowed_are_ignored_and_get_no_code(serve: Serve) -> None:
    allow = ChannelSettings(allow=["ann"], groups="all")
    async with serve("hi", channels=[MemoryChannel()], allow=allow) as scene:
        eves = [written("my secret is xyzzy", "eve", is_group=True), written("/stop", "eve", is_group=True)]
        assert await accepted(scene, *eves, written("hello", "ann", is_group=True)) == [False, False, True]
        assert await scene.contents(1, "den", "memory") == ["hi"]
        assert "xyzzy" not in str(scene.model.requests)
        assert not await scene.gateway.access.pairings()


async def test_answer_with_the_word_needs_no_mention_in_a_group_but_a_plain_yes_does(serve: Serve) -> None:
    allow = ChannelSettings(allow=["ann"])
    async with serve(ASKS, "done", channels=[MemoryChannel()], allow=allow) as scene:
        await accepted(scene, written("post hello", "ann", is_group=True))
        word = await word_of(scene, chat="den", channel="memory")
        unaddressed = partial(written, sender="ann", is_group=True, is_addressed=False)
        assert await accepted(scene, unaddressed("yes"), unaddressed(f"yes {word}")) == [False, True]
        assert (await scene.contents(2, "den", "memory"))[-1] == "done"


async def test_messages_from_bots_are_dropped(serve: Serve) -> None:
    async with serve(channels=[MemoryChannel()]) as scene:
        assert await accepted(scene, written("hello", "ann", is_bot=True)) == [False]
        assert not await scene.gateway.access.pairings()


ANN = {"irc": "ann", "matrix": "@ann:example.org"}


async def test_person_is_allowed_and_has_one_session_for_direct_chats_if_set(serve: Serve) -> None:
    channels = [MemoryChannel("irc"), MemoryChannel("matrix")]
    config = {"people": {"ann": {**ANN, "session": "one"}}}
    async with serve("noted", "plum", channels=channels, allow=NOBODY, config=config) as scene:
        await accepted(scene, written("the word is plum", "ann", "irc"))
        await scene.contents(1, "ann", "irc")
        await accepted(scene, written("which word?", "@ann:example.org", "matrix"))
        assert await scene.contents(1, "@ann:example.org", "matrix") == ["plum"], "in the chat that asked"
        assert "the word is plum" in str(scene.model.requests[-1].messages)


async def test_person_has_one_session_per_channel_by_default(serve: Serve) -> None:
    channels = [MemoryChannel("irc"), MemoryChannel("matrix")]
    async with serve("noted", "none", channels=channels, allow=NOBODY, config={"people": {"ann": ANN}}) as scene:
        await accepted(scene, written("the word is plum", "ann", "irc"))
        await scene.contents(1, "ann", "irc")
        await accepted(scene, written("which word?", "@ann:example.org", "matrix"))
        await scene.contents(1, "@ann:example.org", "matrix")
        assert "plum" not in str(scene.model.requests[-1].messages)


async def test_person_answers_a_question_of_one_channel_on_another_and_nobody_else_does(serve: Serve) -> None:
    channels = [MemoryChannel("irc"), MemoryChannel("matrix")]
    allow = ChannelSettings(allow=["eve"])
    async with serve(ASKS, "done", channels=channels, allow=allow, config={"people": {"ann": ANN}}) as scene:
        await accepted(scene, written("post hello", "ann", "irc"))
        word = await word_of(scene, chat="ann", channel="irc")
        await accepted(scene, written(f"/approve {word}", "eve", "matrix"))
        assert await scene.contents(1, "eve", "matrix") == [f"{word} isn't open."]
        await accepted(scene, written(f"yes {word}", "@ann:example.org", "matrix"))
        assert await scene.contents(1, "@ann:example.org", "matrix") == ["Approved."]
        assert (await scene.contents(2, "ann", "irc"))[-1] == "done"


async def test_message_to_a_session_that_waits_lists_the_question_of_the_persons_other_chat(serve: Serve) -> None:
    channels = [MemoryChannel("irc"), MemoryChannel("matrix")]
    config = {"people": {"ann": {**ANN, "session": "one"}}}
    async with serve(ASKS, channels=channels, allow=NOBODY, config=config) as scene:
        await accepted(scene, written("post hello", "ann", "irc"))
        word = await word_of(scene, chat="ann", channel="irc")
        await accepted(scene, written("well?", "@ann:example.org", "matrix"))
        assert f"/approve {word}" in (await scene.contents(1, "@ann:example.org", "matrix"))[0]


async def test_question_goes_to_the_owners_own_chat_if_it_is_one_of_several(serve: Serve) -> None:
    channels = [MemoryChannel("irc"), MemoryChannel("matrix")]
    owner = ["irc:boss", "matrix:boss"]
    async with serve(ASKS, ASKS, channels=channels, allow=NOBODY, owner=owner) as scene:
        await accepted(scene, written("post hello", "boss", "matrix"))
        await word_of(scene, chat="boss", channel="matrix")
        await scene.say("post hello")
        await word_of(scene, chat="boss", channel="irc")


async def test_edit_replaces_the_text_of_a_message_that_waits(serve: Serve) -> None:
    async with serve(ASKS, "done", "fine", channels=[MemoryChannel()]) as scene:
        await accepted(scene, written("post hello", "ann"))
        word = await word_of(scene, chat="ann", channel="memory")
        await accepted(scene, written("buy 3 plums", "ann", id="7"))
        assert await accepted(scene, written("buy 4 plums", "ann", edit_of="7")) == [False]
        await accepted(scene, written(f"/approve {word}", "ann"))
        await scene.settled()
        seen = str(scene.model.requests[-1].messages)
        assert "buy 4 plums" in seen
        assert "buy 3 plums" not in seen


async def test_edit_of_an_answered_message_corrects_it_once(serve: Serve) -> None:
    async with serve("3 plums", "4 plums", channels=[MemoryChannel()]) as scene:
        await accepted(scene, written("buy 3 plums", "ann", id="7"))
        await scene.contents(1, "ann", "memory")
        edits = [written("buy 4 plums", "ann", edit_of="7", id=f"7:{number}") for number in (1, 2)]
        assert await accepted(scene, edits[0], edits[0], edits[1]) == [True, False, False]
        assert (await scene.contents(2, "ann", "memory"))[-1] == "4 plums"
        assert 'Correction of my message "buy 3 plums": buy 4 plums' in str(scene.model.requests[-1].messages)


async def test_edit_by_somebody_else_replaces_nothing(serve: Serve) -> None:
    async with serve(ASKS, "done", "fine", "fine", channels=[MemoryChannel()]) as scene:
        await accepted(scene, written("post hello", "ann", is_group=True))
        await word_of(scene, chat="den", channel="memory")
        await accepted(scene, written("buy 3 plums", "ann", is_group=True, id="7"))
        assert await accepted(scene, written("buy 9 plums", "ben", is_group=True, edit_of="7")) == [True]


async def test_replays_with_new_ids_are_dropped_as_often_as_they_were_seen(serve: Serve) -> None:
    from denizen.ports import ChannelLimits

    channel = MemoryChannel("irc", ChannelLimits(replays_with_new_ids=True))
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)

    def write(content: str, seconds: float) -> None:
        channel.write(content, sent_at=noon + timedelta(seconds=seconds))

    async with serve(*["ok"] * 9, channels=[channel], clock=FakeClock()) as scene:
        write("hello", 0)
        write("hello", 0.4)
        write("bye", 9)
        await scene.contents(3, "home", "irc")
        channel.drop_connection()
        for content, seconds in (("hello", 0), ("hello", 0), ("hello", 0), ("bye", 9), ("missed", 5), ("bye", 60)):
            write(content, seconds)
        await scene.contents(6, "home", "irc")
        await scene.settled()
        asked = [request.messages[-1] for request in scene.model.requests]
    words = [re.search(r"hello|bye|missed", str(each))[0] for each in asked]  # pyrefly: ignore[unsupported-operation]
    assert words == ["hello", "hello", "bye", "hello", "missed", "bye"]


async def test_owner_that_is_not_a_chat_is_refused(serve: Serve) -> None:
    with pytest.raises(ConfigError, match=r'gateway\.owner is "channel:chat"'):
        async with serve(owner=["irc:boss", "boss"]):
            pass


async def test_heartbeat_reports_to_owners_and_never_to_groups(serve: Serve) -> None:
    allowed = ChannelSettings(allow=["eve", "boss"], groups="all")
    async with serve("1", "2", "3", channels=[MemoryChannel()], allow=allowed, owner="memory:boss") as scene:
        boss, eve, group = written("a", "boss"), written("b", "eve"), written("c", "boss", is_group=True)
        assert await accepted(scene, boss, eve, group) == [True, True, True]
        assert scene.gateway.last_chat.now.last_chat == "boss"
