"""What a character answers to an instruction of its operator from elsewhere."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.moo.play import FakeWorld, Play, calls, playing, text

from denizen.errors import ModelError
from denizen.messages import AssistantMessage, ToolCall
from denizen.ports import ModelRequest
from denizen.sessions.request_socket import SessionRequest
from denizen.worlds.moo.brain import NO_MODEL
from denizen.worlds.moo.operator_answers import CUT_OFF


def asks(play: Play, words: str, request_id: str = "irc:1") -> asyncio.Task[str]:
    return asyncio.create_task(play.brain.answer(SessionRequest(request_id, words)))


async def answer(play: Play, words: str, request_id: str = "irc:1") -> str:
    asked = asks(play, words, request_id)
    await play.until(asked.done)
    return asked.result()


@pytest.mark.parametrize(
    ("script", "answered"),
    [
        ([text("Laying bricks.")], "Laying bricks."),
        ([calls("look"), text("I see a wall."), text("...")], "I see a wall."),
        ([calls("look", "go north"), AssistantMessage([ToolCall("d", "done", {})])], "It sent: look; go north"),
        ([ModelError("no such key", kind="auth")], "The model failed: no such key"),
        (None, NO_MODEL),
    ],
)
async def test_it_answers_with_what_it_says_or_else_does(
    tmp_path: Path, script: list[Any] | None, answered: str
) -> None:
    async with playing(tmp_path, script, idle_wakeup_seconds=0) as play:
        assert answered in await answer(play, "What are you doing?")


async def test_the_model_sees_it_as_the_operators_words(tmp_path: Path) -> None:
    async with playing(tmp_path, [text("Resting.")], idle_wakeup_seconds=0) as play:
        await answer(play, "What are you doing?")
        assert "[Operator]: What are you doing?" in str(play.model.requests[0].messages)
        assert play.watcher.told("operator") == ["What are you doing?"]


async def test_output_from_before_the_model_saw_the_instruction_is_not_its_answer(tmp_path: Path) -> None:
    asked: list[asyncio.Task[str]] = []

    def meanwhile(_: ModelRequest) -> AssistantMessage:
        asked.append(asks(play, "What are you doing?"))
        return text("A cat!")

    async with playing(tmp_path, [meanwhile, text("Watching a cat.")]) as play:
        play.world.say("A cat walks in.")
        await play.until(lambda: asked and asked[0].done())
        assert asked[0].result() == "Watching a cat."


async def test_the_same_id_is_instructed_once_and_has_the_same_answer(tmp_path: Path) -> None:
    async with playing(tmp_path, [text("Digging."), text("Resting.")], idle_wakeup_seconds=0) as play:
        first, again = asks(play, "Dig!"), asks(play, "Dig!")
        await play.until(lambda: first.done() and again.done())
        assert [first.result(), again.result(), await answer(play, "Dig!")] == ["Digging."] * 3
        assert await answer(play, "Dig!", "irc:2") == "Resting."
        assert play.watcher.told("operator") == ["Dig!", "Dig!"]
    async with playing(tmp_path, [], idle_wakeup_seconds=0) as play:
        assert await answer(play, "Dig!") == "Digging."


async def test_after_a_crash_it_is_not_instructed_again(tmp_path: Path) -> None:
    with suppress(ZeroDivisionError):
        async with playing(tmp_path, [calls("@dig north")], idle_wakeup_seconds=0) as play:
            asked = asks(play, "Dig!")
            await play.until(lambda: play.world.sent)
            raise ZeroDivisionError
    asked.cancel()
    async with playing(tmp_path, [], idle_wakeup_seconds=0) as play:
        assert await answer(play, "Dig!") == CUT_OFF
        assert (play.world.sent, play.watcher.told("operator")) == ([], [])


async def test_a_lost_connection_delays_the_answer(tmp_path: Path) -> None:
    def breaks(_: ModelRequest) -> AssistantMessage:
        play.world.lose()
        return calls("look")

    async with playing(tmp_path, [breaks, text("Where was I?"), text("Digging.")]) as play:
        asked = asks(play, "Dig!")
        await play.until(play.running.done)
        play.go_on(FakeWorld(play.clock))
        await play.until(asked.done)
        assert asked.result() in {"Where was I?", "Digging."}
