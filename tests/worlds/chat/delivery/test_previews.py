"""Previews: how they are shown, and how replies replace them."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.engine.scene import call
from tests.worlds.chat.conftest import PATIENCE, PLUMS, Halting, Scene, Serve, key_of, message

from denizen.ports import ChannelLimits, InboundMessage, OutboundMessage, RateLimited
from denizen.ports.channel import Live
from denizen.testing import MemoryChannel
from denizen.worlds.chat.ledger import ledger, outbound
from denizen.worlds.chat.ledger.database import Database

TELLS = call(("message", {"text": "by the tool"}))
ASKS = call(("post", {"text": "hello"}))


class Blackboard(MemoryChannel):
    """A channel that shows previews; keeps all of them, and what was sent as which id."""

    def __init__(self, live: Live = "edit", length: int = 0) -> None:
        super().__init__("board", ChannelLimits(live=live, live_interval=0.0, length=length, reconciles=True))
        self.previews: list[str] = []
        self.seen = asyncio.Event()
        self.fails: Exception | None = None

    async def show(self, chat: str, draft: str, text: str) -> str:
        self.previews.append(text)
        self.seen.set()
        if self.fails:
            raise self.fails
        return await super().show(chat, draft, text)


def asks(content: str, **more: Any) -> InboundMessage:
    return message(content, channel="board", **more)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 (of a channel that knows nothing of events)
            await asyncio.sleep(0.001)


async def delivered(scene: Scene, board: Blackboard, count: int = 1) -> list[str]:
    """The chat's messages, once so many were sent."""
    await until(lambda: len(board.sent) == count)
    await scene.settled()
    return [*board.shown("ann")]


async def row(database: Database, message_id: str) -> tuple[str, str]:
    """The preview of a message, and all that the ledger has in its tables, as text."""
    read = partial(_row, message_id=message_id)
    return await database.run(read)


def _row(db: ledger.LedgerConnection, message_id: str) -> tuple[str, str]:
    [preview] = db.execute("SELECT preview FROM inbox WHERE id = ?", [message_id]).fetchone()
    everything = [*db.execute("SELECT * FROM inbox").fetchall(), *db.execute("SELECT * FROM outbox").fetchall()]
    return preview, str(everything)


async def test_reply_replaces_its_preview(serve: Serve) -> None:
    board, model = Blackboard(), Halting([PLUMS])
    async with serve(channels=[board], asked=model) as scene:
        await scene.gateway.accept(asks("what is there?"))
        await until(lambda: board.shown("ann") == ["There are plums, pears, and …"])
        preview, everything = await row(scene.gateway.database, "what is there?")
        assert (preview, "plums" in everything) == ("board-1", False)
        model.go.set()
        assert await delivered(scene, board) == [PLUMS]
        assert [each.edits for each in board.sent.values()] == ["board-1"]


async def test_reply_replaces_the_preview_of_a_gateway_that_died(serve: Serve) -> None:
    board, model = Blackboard(), Halting([PLUMS])
    async with serve(channels=[board], asked=model) as scene:
        await scene.gateway.accept(asks("what is there?"))
        await until(lambda: board.shown("ann") == ["There are plums, pears, and …"])
    async with serve(PLUMS, channels=[board]) as scene:
        assert await delivered(scene, board) == [PLUMS]


async def test_long_reply_replaces_its_preview_by_the_first_part(serve: Serve) -> None:
    board, model = Blackboard(length=20), Halting([PLUMS])
    async with serve(channels=[board], asked=model) as scene:
        await scene.gateway.accept(asks("what is there?"))
        await until(lambda: board.shown("ann") == ["There are plums, …"])
        model.go.set()
        assert await delivered(scene, board, 2) == ["There are plums,", "pears, and apples"]
        assert max(map(len, board.previews)) <= 20


async def test_first_flood_limit_ends_the_preview(serve: Serve) -> None:
    board = Blackboard()
    board.fails = RateLimited("too many")
    async with serve(call(("look", {})), PLUMS, channels=[board]) as scene:
        await scene.gateway.accept(asks("what is there?"))
        assert await delivered(scene, board) == [PLUMS]
    assert len(board.previews) == 1


async def test_preview_that_fails_is_dropped(serve: Serve) -> None:
    board, model = Blackboard(), Halting([PLUMS])
    board.fails = ConnectionError("the line is dead")
    async with serve(channels=[board], asked=model) as scene:
        await scene.gateway.accept(asks("what is there?"))
        await board.seen.wait()
        model.go.set()
        assert await delivered(scene, board) == [PLUMS]


async def test_draft_is_not_replaced(serve: Serve) -> None:
    board, model = Blackboard(live="draft"), Halting([PLUMS])
    async with serve(channels=[board], asked=model) as scene:
        await scene.gateway.accept(asks("what is there?"))
        await board.seen.wait()
        model.go.set()
        await delivered(scene, board)
        assert [each.edits for each in board.sent.values()] == [""]


async def test_question_replaces_the_preview_and_the_reply_gets_its_own(serve: Serve) -> None:
    board = Blackboard()
    async with serve(ASKS, PLUMS, channels=[board]) as scene:
        await scene.gateway.accept(asks("post hello"))
        await until(lambda: len(board.sent) == 1)
        board.press("Approve")
        shown = await delivered(scene, board, 2)
    assert "Answer /approve" in shown[0]
    assert shown[1:] == [PLUMS]


async def test_message_of_the_tool_replaces_the_preview_and_ends_it(serve: Serve) -> None:
    board = Blackboard()
    async with serve(TELLS, PLUMS, channels=[board]) as scene:
        await scene.gateway.accept(asks("tell me"))
        assert await delivered(scene, board) == ["by the tool"]


async def test_reply_that_would_not_be_sent_replaces_its_preview(database: Database) -> None:
    """As after a crash: the message tool has sent one, and the resumed turn has shown its last words."""
    inbound = asks("tell me")
    await database.run(partial(ledger.put, message=inbound))
    reply = OutboundMessage("board", "ann", PLUMS, key_of("ann", "board"), inbound.id, id="tell me:reply", send=False)
    await database.run(partial(outbound.keep_preview, message=inbound, native_id="board-1"))
    await database.run(partial(outbound.add_outbound, message=reply))
    row = (await database.run(partial(outbound.first_unsent, chats=[("board", "ann")])))["board", "ann"]
    assert (await database.run(partial(outbound.begin_sending, row=row))).message.edits == "board-1"


async def test_preview_that_arrives_after_a_kept_reply_has_it_sent(database: Database) -> None:
    inbound = asks("tell me")
    await database.run(partial(ledger.put, message=inbound))
    reply = OutboundMessage("board", "ann", PLUMS, key_of("ann", "board"), inbound.id, id="tell me:reply", send=False)
    await database.run(partial(outbound.add_outbound, message=reply))
    assert not await database.run(outbound.unsent_chats)
    assert await database.run(partial(outbound.keep_preview, message=inbound, native_id="board-1"))
    assert await database.run(outbound.unsent_chats) == [("board", "ann")]


async def test_delivery_waits_for_a_preview_that_is_being_sent(serve: Serve) -> None:
    arrives = asyncio.Event()

    class Slow(Blackboard):
        async def show(self, chat: str, draft: str, text: str) -> str:
            shown = await super().show(chat, draft, text)
            await arrives.wait()
            return shown

    board = Slow()
    async with serve(PLUMS, channels=[board]) as scene:
        await scene.gateway.accept(asks("what is there?"))
        await scene.settled()
        assert not board.sent
        arrives.set()
        assert await delivered(scene, board) == [PLUMS]


@pytest.mark.parametrize("more", [{"metadata": {ledger.ORIGIN: "the heartbeat"}}])
async def test_turn_that_no_person_began_is_not_shown(serve: Serve, more: dict[str, Any]) -> None:
    board = Blackboard()
    async with serve(PLUMS, channels=[board]) as scene:
        await scene.gateway.accept(asks("do it", **more))
        await delivered(scene, board)
    assert not board.previews


async def test_chats_without_previews_see_whole_replies(serve: Serve) -> None:
    board = Blackboard(live="none")
    async with serve(PLUMS, channels=[board]) as scene:
        await scene.gateway.accept(asks("what is there?"))
        assert await delivered(scene, board) == [PLUMS]
    assert not board.previews
