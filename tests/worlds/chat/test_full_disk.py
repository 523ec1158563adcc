"""A full disk: what can't be kept is refused, and what was accepted isn't lost."""

from pathlib import Path

from tests.full_disk import file_size_limit
from tests.worlds.chat.conftest import Serve
from tests.worlds.chat.test_gateway import HeardClock, Held
from tests.worlds.chat.test_http import reached


def size_of(home: Path) -> int:
    return (home / "gateway.db-wal").stat().st_size


async def test_message_is_refused_while_the_disk_is_full_and_accepted_once_there_is_room(
    serve: Serve, home: Path
) -> None:
    async with serve("first", "second") as scene, reached(scene, home) as client:
        await client.post(id="1")
        assert await scene.contents(1) == ["first"]
        with file_size_limit(size_of(home)):
            status, answer = await client.post(id="2")
        assert status == 503
        assert "Free some space" in answer["error"]["message"]
        status, answer = await client.post(id="2")
        assert (status, answer["accepted"]) == (202, True)
        assert await scene.contents(2) == ["first", "second"]


async def test_accepted_message_is_answered_once_there_is_room(serve: Serve, home: Path) -> None:
    clock, held = HeardClock(), Held("lost with the disk")
    async with serve(held, "after all", "after all", clock=clock, attempts=2) as scene, reached(scene, home) as client:
        await client.post(id="1")
        await held.begun.wait()
        with file_size_limit(size_of(home)):
            held.go.set()
            for _ in range(5):
                await clock.waits.get()
        replies = await scene.replies(1)
        assert [(reply.message.in_reply_to, reply.state) for reply in replies] == [("1", "sent")]
        status, answer = await client.post(id="1")
        assert (status, answer["accepted"]) == (202, False)
