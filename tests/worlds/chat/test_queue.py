"""The queue on the ledger passes the suite for turn queues; what a busy session makes of a message."""

import asyncio
from pathlib import Path

import pytest

from denizen.clock import SystemClock
from denizen.ports import Interrupt, OutboundMessage, QueuedTurn, Steer, TurnQueue
from denizen.testing import TurnQueueConformance
from denizen.testing.conformance_queue import NewQueue, message
from denizen.worlds.chat import ledger
from denizen.worlds.chat.database import Database
from denizen.worlds.chat.ledger import Connection, WhenBusy
from denizen.worlds.chat.queue import DEATHS, LedgerQueue


class TestLedgerQueue(TurnQueueConformance):
    @pytest.fixture
    def new_queue(self, database: Database) -> NewQueue:
        self.database = database
        return lambda: LedgerQueue(database, clock=SystemClock(), retry_after=0.0)

    async def outbox(self, queue: TurnQueue) -> list[OutboundMessage]:
        found = await self.database.run(lambda db: ledger.replies(db, "irc", "ann", 0, 10))
        return [reply.message for reply in found]


@pytest.mark.parametrize(("when_busy", "kind"), [("steer", Steer), ("interrupt", Interrupt)])
async def test_message_for_a_busy_session_is_said_to_its_turn_and_over_with_it(
    database: Database, when_busy: WhenBusy, kind: type[Steer | Interrupt]
) -> None:
    suite = TurnQueueConformance()
    queue = LedgerQueue(database, clock=SystemClock(), when_busy={"irc": when_busy})
    async with suite.serving(queue) as worker:
        for content in ("1", "2"):
            await queue.put(message(content))
        running = await worker.next()
        assert await worker.controls_of(running) == [kind("2", "2")]
        running.end()
        await queue.put(message("3"))
        assert await worker.finish_all(1) == ["3"], "2 is over"


async def test_message_that_was_not_heard_gets_a_turn_of_its_own(database: Database) -> None:
    suite = TurnQueueConformance()
    queue = LedgerQueue(database, clock=SystemClock(), when_busy={"irc": "steer"})
    async with suite.serving(queue) as worker:
        for content in ("1", "2"):
            await queue.put(message(content))
        assert await worker.finish_all(2) == ["1", "2"]


async def test_message_over_which_the_process_keeps_dying_is_given_up(home: Path) -> None:
    for _ in range(DEATHS + 1):
        database = Database(home / "gateway.db", SystemClock())
        await database.run(lambda db: ledger.put(db, message("1")))
        await database.run(lambda db: ledger.claim(db, "worker", 0.0, 1))
        database.close()
    database = Database(home / "gateway.db", SystemClock())
    queue = LedgerQueue(database, clock=SystemClock())
    async with TurnQueueConformance().serving(queue) as worker:
        await worker.expect_nothing_but("a")
        over, reply = await database.run(lambda db: ledger.outcome(db, message("1")))
    database.close()
    assert over
    assert "ended 26 times" in reply


async def test_what_has_been_over_for_long_is_removed_and_numbers_go_on_rising(database: Database) -> None:
    queue = LedgerQueue(database, clock=SystemClock())

    async def reply(turn: QueuedTurn) -> OutboundMessage:
        return ledger.reply_to(turn.message, "yes")

    def numbers(db: Connection) -> list[int]:
        return [each.seq for each in ledger.replies(db, "irc", message("1").chat, 0, 10)]

    async def serve(content: str) -> None:
        await queue.put(message(content))
        serving = asyncio.create_task(queue.serve(reply))
        while (await database.run(lambda db: ledger.outcome(db, message(content))))[0] not in ledger.OVER:
            pass
        serving.cancel()
        await asyncio.wait([serving])
        await database.run(lambda db: ledger.mark_outbound(db, ledger.reply_to(message(content), ""), "sent"))

    await serve("1")
    await serve("2")
    await database.run(lambda db: ledger.prune(db, 1000.0, keep=100.0))
    await database.run(lambda db: ledger.prune(db, 1099.0, keep=100.0))
    assert not await queue.put(message("1")), "its id is known"
    assert await database.run(numbers) == [1, 2]
    await database.run(lambda db: ledger.prune(db, 1100.0, keep=100.0))
    assert await database.run(numbers) == [2], "the last one stays, for its number"
    await serve("3")
    await queue.put(message("4"))
    await database.run(lambda db: ledger.prune(db, 1e9, keep=100.0))
    assert await database.run(numbers) == [3]
    assert not await queue.put(message("4")), "what waits stays"
