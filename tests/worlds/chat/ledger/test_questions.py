"""Questions in a chat: which one an answer means, and who may give it."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.engine.scene import call
from tests.tools.mcp.conftest import HOSTILE
from tests.worlds.chat.conftest import Scene, Serve, message, said

from denizen.ports import InboundMessage, OutboundMessage, Sent
from denizen.runtime.clock import SystemClock
from denizen.testing import MemoryChannel
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.ledger.questions import ANSWERED_BY, ASKED_AT, CALL, WORD

ASKS = call(("post", {"text": "hello"}))
ASKS_BEN = call(("post", {"text": "goodbye"}))


async def word_of(scene: Scene, number: int = 1, chat: str = "boss", channel: str = "http") -> str:
    """The word of the chat's message of that number."""
    question = (await scene.replies(number, chat, channel))[-1].message
    found = re.search(r"/approve ([a-z]\d), or /deny \1 ", question.content)
    assert found
    return found[1]


async def two_open(scene: Scene) -> tuple[str, str]:
    """The words of two questions that the owner is asked."""
    await scene.say("post hello")
    first = await word_of(scene)
    await scene.say("post goodbye", "ben")
    return first, await word_of(scene, 2)


@pytest.mark.parametrize("answer", ["/approve {}", "/APPROVE {}", "yes {}", "Yes {}!"])
async def test_word_says_which_question_is_meant(serve: Serve, answer: str) -> None:
    async with serve(ASKS, ASKS_BEN, "done", owner="http:boss") as scene:
        _, second = await two_open(scene)
        await scene.say(answer.format(second), "boss")
        assert await scene.contents(1, "ben") == ["done"]
        assert "posted goodbye" in said(scene.model)
        assert not await scene.sent()


@pytest.mark.parametrize(("label", "heard"), [("Approve", "posted hello"), ("Deny", "the user said no")])
async def test_question_has_a_button_for_each_answer(serve: Serve, label: str, heard: str) -> None:
    async with serve(ASKS, "done") as scene:
        await scene.say("post hello")
        [question] = await scene.replies(1)
        [text] = [each.text for each in question.message.choices if each.label == label]
        await scene.say(text)
        await scene.contents(2)
        assert heard in said(scene.model)


async def test_denial_by_word_has_its_reason(serve: Serve) -> None:
    async with serve(ASKS, "done") as scene:
        await scene.say("post hello")
        word = await word_of(scene, chat="ann")
        await scene.say(f"/deny {word} because it is late")
        await scene.contents(2)
        assert "the user said no: because it is late" in said(scene.model)


@pytest.mark.parametrize("answer", ["/approve", "yes", "/deny because I say so"])
async def test_answer_without_a_word_lists_several_open_questions(serve: Serve, answer: str) -> None:
    async with serve(ASKS, ASKS_BEN, owner="http:boss") as scene:
        words = await two_open(scene)
        await scene.say(answer, "boss")
        listed = (await scene.contents(3, "boss"))[-1]
        assert all(f"{word}: " in listed for word in words)
        assert "hello" in listed
        assert len(scene.model.requests) == 2


async def test_plain_yes_answers_the_only_question_and_is_else_a_message(serve: Serve) -> None:
    async with serve(ASKS, "done", "what?") as scene:
        await scene.say("post hello")
        await scene.replies(1)
        await scene.say("Yes.")
        assert (await scene.contents(2))[-1] == "done"
        await scene.say("yes")
        assert (await scene.contents(3))[-1] == "what?"


async def test_yes_with_more_words_is_a_message_and_told_what_waits(serve: Serve) -> None:
    async with serve(ASKS) as scene:
        await scene.say("post hello")
        word = await word_of(scene, chat="ann")
        await scene.say("yes, if it is not too long")
        waits = (await scene.contents(2))[-1]
        assert "waits" in waits
        assert f"/approve {word}" in waits
        assert len(scene.model.requests) == 1


@pytest.mark.parametrize("answer", ["/approve {}", "yes {}"])
async def test_word_that_is_no_longer_open_is_answered_so(serve: Serve, answer: str) -> None:
    async with serve(ASKS, "done", ASKS_BEN) as scene:
        await scene.say("post hello")
        old = await word_of(scene, chat="ann")
        await scene.say("/approve")
        await scene.contents(2)
        await scene.say("and then?")
        new = await word_of(scene, 3, "ann")
        await scene.say(answer.format(old))
        told = (await scene.contents(4))[-1]
        assert told.startswith(f"{old} isn't open.")
        assert f"{new}: " in told


async def test_yes_to_a_question_that_was_not_shown_yet_does_not_count(serve: Serve) -> None:
    async with serve(ASKS) as scene:
        await scene.say("post hello")
        await scene.replies(1)
        await scene.say("yes", metadata={"denizen.text.seen": 0})
        assert "Say which one" in (await scene.contents(2))[-1]
        assert len(scene.model.requests) == 1


class Slow(MemoryChannel):
    """Fails to send."""

    async def send(self, message: OutboundMessage) -> Sent:
        return Sent("failed", "the line is dead")


def in_group(content: str, sender: str) -> InboundMessage:
    key = "agent:main:channel:memory:account:default:peer:group:team"
    return InboundMessage("memory", "team", sender, content, key)


async def told(scene: Scene, count: int) -> Sequence[str]:
    return await scene.contents(count, "team", "memory")


async def test_others_of_a_group_may_not_answer_and_the_owner_may(serve: Serve) -> None:
    async with serve(ASKS, "done", channels=[MemoryChannel()], owner="memory:boss") as scene:
        await scene.gateway.accept(in_group("post hello", "ann"))
        word = await word_of(scene, chat="boss", channel="memory")
        await scene.gateway.accept(in_group(f"/approve {word}", "mallory"))
        assert "isn't open" in (await told(scene, 1))[0], "it was asked elsewhere"
        boss = message(f"/approve {word}", "boss", channel="memory")
        await scene.gateway.accept(boss)
        assert (await told(scene, 2))[-1] == "done"


async def test_only_who_asked_may_answer_in_a_group(serve: Serve) -> None:
    async with serve(ASKS, "done", channels=[MemoryChannel()]) as scene:
        await scene.gateway.accept(in_group("post hello", "ann"))
        word = await word_of(scene, chat="team", channel="memory")
        await scene.gateway.accept(in_group(f"/approve {word}", "mallory"))
        assert "Only the owner" in (await told(scene, 2))[-1]
        await scene.gateway.accept(in_group(f"yes {word}", "ann"))
        assert (await told(scene, 3))[-1] == "done"


async def test_plain_yes_does_not_count_before_the_question_was_delivered(serve: Serve) -> None:
    async with serve(ASKS, channels=[Slow()]) as scene:
        await scene.gateway.accept(in_group("post hello", "ann"))
        await word_of(scene, chat="team", channel="memory")
        await scene.gateway.accept(in_group("yes", "ann"))
        assert "Say which one" in (await told(scene, 2))[-1]


async def test_server_that_asks_during_a_call_parks_the_turn_and_is_called_again(serve: Serve, tmp_path: Path) -> None:
    server = {"command": sys.executable, "args": [str(HOSTILE), "asks"]}
    rule = {"tool": "mcp_notes_work", "decide": "allow"}
    config = {"mcp": {"notes": server}, "policy": {"rules": [rule]}}
    (tmp_path / "workspace").mkdir()
    work = call(("mcp_notes_work", {}))
    async with serve(work, "done", workspace=tmp_path / "workspace", config=config) as scene:
        await scene.say("work")
        word = await word_of(scene, chat="ann")
        assert "How large?" in (await scene.contents(1))[0]
        await scene.say(f"/approve {word} 3")
        assert (await scene.contents(2))[-1] == "done"
        assert '"accept", "content": {"size": 3}' in said(scene.model).replace("\\", "")


async def test_words_of_a_day_differ(database: Database) -> None:
    outbox, day = Outbox(database, {}, clock=SystemClock()), 86_400.0
    for number in range(240):
        metadata = {CALL: f"c{number}", ASKED_AT: day + number, ANSWERED_BY: ""}
        await outbox.put(OutboundMessage("http", "ann", "May I?", id=f"m{number}", metadata=metadata))
    replies = await outbox.replies("http", "ann", after=0, most=300, wait=0)
    assert len({each.message.metadata[WORD] for each in replies}) == 240
