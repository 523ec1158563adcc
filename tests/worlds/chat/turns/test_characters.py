"""Characters of text worlds, asked from a chat."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.worlds.chat.conftest import Held, Scene, Serve, message
from tests.worlds.chat.turns.test_sender_access import NOBODY, accepted, code_of, written

from denizen.ports import ChannelSettings
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.sessions.request_socket import SessionRequest, serve_requests
from denizen.testing import FakeClock, MemoryChannel

MASON = "agent:mason:channel:moo:account:mason@{}:peer:direct:world"


class Character:
    """The process of a character; `asked` are the ids and texts that it got. It answers once it may."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.came = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def answer(self, request: SessionRequest) -> str:
        self.asked.append((request.id, request.text))
        self.came.set()
        await self.may_answer.wait()
        return "Laying bricks."


async def has_run(home: Path, host: str = "moo.example") -> str:
    """The key of a character that has run in the home."""
    store = JsonlStore(home / "sessions", clock=SystemClock())
    await (await store.open(MASON.format(host))).close()
    return MASON.format(host)


@asynccontextmanager
async def running(home: Path, host: str = "moo.example") -> AsyncGenerator[Character]:
    character = Character()
    async with serve_requests(home, await has_run(home, host), character.answer):
        yield character


async def reply(scene: Scene, command: str, count: int = 1) -> str:
    await scene.say(command)
    return (await scene.contents(count))[-1]


async def test_answer_comes_back_to_the_chat_that_asked(serve: Serve, home: Path) -> None:
    async with running(home) as mason, serve("It is noon.") as scene:
        assert await reply(scene, "/in Mason what are\nyou doing?") == "mason: Laying bricks."
        assert mason.asked == [("http:/in Mason what are\nyou doing?", "what are\nyou doing?")]
        [sent] = await scene.replies(1)
        assert sent.message.session_key == message("").session_key
        assert not scene.model.requests


@pytest.mark.parametrize(
    ("command", "answered"),
    [
        ("/in mason hello", "mason isn't running. Start it: denizen moo run DIR"),
        ("/in tinker hello", "No character is called tinker. Characters: mason."),
        ("/in mason", "Add an instruction or a question for mason: /in mason what are you doing?"),
        ("/in", "No character is called that. Characters: mason."),
    ],
)
async def test_missing_answer_is_explained(serve: Serve, home: Path, command: str, answered: str) -> None:
    await has_run(home)
    async with serve() as scene:
        assert await reply(scene, command) == answered


async def test_home_without_characters_says_how_to_run_one(serve: Serve) -> None:
    async with serve() as scene:
        assert (
            await reply(scene, "/in mason hi")
            == "No character is called mason. Characters: none has run yet; denizen moo run DIR."
        )


async def test_name_of_two_characters_means_the_running_one_or_needs_the_account(serve: Serve, home: Path) -> None:
    await has_run(home, "old.example")
    async with serve() as scene, running(home) as mason:
        assert await reply(scene, "/in mason hello") == "mason: Laying bricks."
        async with running(home, "old.example") as old:
            which = "2 characters are called mason. Say which: mason@moo.example, mason@old.example"
            assert await reply(scene, "/in mason hi", 2) == which
            assert await reply(scene, "/in mason@old.example hi", 3) == "mason@old.example: Laying bricks."
            assert (len(mason.asked), len(old.asked)) == (1, 1)


async def test_later_messages_of_the_chat_do_not_wait_for_the_character(serve: Serve, home: Path) -> None:
    async with running(home) as mason, serve("It is noon.") as scene:
        mason.may_answer.clear()
        await scene.say("/in mason hello")
        await mason.came.wait()
        assert await reply(scene, "What time is it?") == "It is noon."
        mason.may_answer.set()
        assert await scene.contents(2) == ["It is noon.", "mason: Laying bricks."]


async def test_it_does_not_wait_for_a_turn_of_the_chat(serve: Serve, home: Path) -> None:
    slow = Held("It is noon.")
    async with running(home), serve(slow) as scene:
        await scene.say("What time is it?")
        await slow.begun.wait()
        assert await reply(scene, "/in mason hello") == "mason: Laying bricks."
        slow.go.set()
        await scene.contents(2)


async def test_character_that_does_not_answer_in_time_is_reported(serve: Serve, home: Path) -> None:
    async with running(home) as mason, serve(clock=FakeClock()) as scene:
        mason.may_answer.clear()
        assert "hasn't answered for 10 minutes" in await reply(scene, "/in mason hello")


async def test_message_that_is_delivered_again_asks_once(serve: Serve, home: Path) -> None:
    async with running(home) as mason, serve() as scene:
        await reply(scene, "/in mason hello")
        assert not await scene.gateway.accept(message("/in mason hello"))
        await scene.settled()
        assert len(mason.asked) == 1


async def test_gateway_that_stops_meanwhile_asks_again_with_the_same_id(serve: Serve, home: Path) -> None:
    async with running(home) as mason:
        mason.may_answer.clear()
        async with serve() as scene:
            await scene.say("/in mason hello")
            await mason.came.wait()
        mason.may_answer.set()
        async with serve() as scene:
            assert await scene.contents(1) == ["mason: Laying bricks."]
            assert mason.asked == [("http:/in mason hello", "hello")] * 2


async def test_only_the_owner_may_instruct_it(serve: Serve, home: Path) -> None:
    async with running(home) as mason:
        async with serve(
            channels=[MemoryChannel()], allow=ChannelSettings(allow=["ben"]), owner="memory:boss"
        ) as scene:
            assert (
                await accepted(scene, written("/in mason hello", "ben"), written("/in mason hi", "boss")) == [True] * 2
            )
            assert await scene.contents(1, "ben", "memory") == ["Only the owner may use /in."]
            assert await scene.contents(1, "boss", "memory") == ["mason: Laying bricks."]
        assert [text for _, text in mason.asked] == ["hi"]


async def test_stranger_gets_a_pairing_code_instead(serve: Serve, home: Path) -> None:
    async with running(home) as mason, serve(channels=[MemoryChannel()], allow=NOBODY) as scene:
        assert await accepted(scene, written("/in mason hello", "eve")) == [False]
        await code_of(scene, "eve")
        assert not mason.asked
