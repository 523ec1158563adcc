"""The queue on the ledger passes the suite for turn queues; what a busy session makes of a message."""

import asyncio
from collections.abc import Iterable
from functools import partial
from itertools import count as counter
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from denizen.errors import DenizenError
from denizen.ports import Interrupt, OutboundMessage, Parked, QueuedTurn, Steer, TurnQueue
from denizen.runtime.clock import SystemClock
from denizen.testing import TurnQueueConformance
from denizen.testing.conformance_queue import NewQueue, message
from denizen.worlds.chat.ledger import ledger, outbound
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.ledger.ledger import LedgerConnection
from denizen.worlds.chat.ledger.outbound import ALSO
from denizen.worlds.chat.ledger.sqlite_file import SqliteFile
from denizen.worlds.chat.settings import WhenBusy
from denizen.worlds.chat.turns.queue import MAX_DEATHS, LedgerQueue


class TestLedgerQueue(TurnQueueConformance):
    @pytest.fixture
    def new_queue(self, database: Database) -> NewQueue:
        self.database = database
        return lambda: LedgerQueue(database, clock=SystemClock(), retry_after=0.0)

    async def outbox(self, queue: TurnQueue) -> list[OutboundMessage]:
        found = await self.database.run(lambda db: outbound.replies(db, "irc", "ann", 0, 10))
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


async def test_queue_without_room_for_another_turn_hears_what_is_said_to_its_own(database: Database) -> None:
    suite = TurnQueueConformance()
    queue = LedgerQueue(database, clock=SystemClock(), turns=1, when_busy={"irc": "steer"})
    async with suite.serving(queue) as worker:
        await queue.put(message("1"))
        running = await worker.next()
        await queue.put(message("2"))
        assert await worker.controls_of(running) == [Steer("2", "2")]
        running.end()


async def test_half_a_character_in_a_failure_or_a_reply_ends_nothing(database: Database) -> None:
    suite = TurnQueueConformance()
    queue = LedgerQueue(database, clock=SystemClock(), attempts=1)
    async with suite.serving(queue) as worker:
        for content in ("1", "2", "3"):
            await queue.put(message(content))
        (await worker.next()).end(DenizenError("there is no file \udcff"))
        running = await worker.next()
        running.end(outbound.reply_to(running.turn.message, "it is \udcff"))
        assert await worker.finish_all(1) == ["3"]
    sent = await database.run(lambda db: outbound.replies(db, "irc", "ann", 0, 10))
    assert [each.message.content.rpartition(". ")[2] for each in sent] == ["there is no file ?", "it is ?"]


async def test_parked_turn_goes_on_once_after_a_message_that_interrupts_it(database: Database) -> None:
    suite = TurnQueueConformance()
    queue = LedgerQueue(database, clock=SystemClock(), when_busy={"irc": "interrupt"})
    async with suite.serving(queue) as worker:
        await queue.put(message("1"))
        (await worker.next()).end(Parked())
        await worker.expect_nothing_but("a")
        await queue.put(message("2"))
        again = await worker.next()
        assert await worker.controls_of(again) == [Interrupt("2", "2")]
        again.end(Parked())
        await worker.expect_nothing_but("b")
        await queue.put(message("3"))
        (await worker.next()).end()
        assert await worker.finish_all(1) == ["2"], "the last attempt heard nothing"


async def test_turn_that_fails_answers_what_it_heard_too(database: Database) -> None:
    suite = TurnQueueConformance()
    queue = LedgerQueue(database, clock=SystemClock(), when_busy={"irc": "steer"}, attempts=1)
    async with suite.serving(queue) as worker:
        for content in ("1", "2"):
            await queue.put(message(content))
        running = await worker.next()
        await worker.controls_of(running)
        running.end(DenizenError("down"))
        await queue.put(message("3"))
        await worker.finish_all(1)
    sent = await database.run(lambda db: outbound.replies(db, "irc", "ann", 0, 10))
    assert sent[0].message.metadata == {ALSO: ["2"]}


async def test_controls_speak_for_the_chat_and_not_for_the_system(database: Database) -> None:
    said = message("1")
    for each in (said, message("a report", channel=ledger.SYSTEM)):
        await database.run(partial(ledger.put, message=each))
    assert await database.run(partial(ledger.latest, session_key=said.session_key)) == said


async def test_message_that_was_not_heard_gets_a_turn_of_its_own(database: Database) -> None:
    suite = TurnQueueConformance()
    queue = LedgerQueue(database, clock=SystemClock(), when_busy={"irc": "steer"})
    async with suite.serving(queue) as worker:
        for content in ("1", "2"):
            await queue.put(message(content))
        assert await worker.finish_all(2) == ["1", "2"]


async def test_drain_begins_nothing_and_waits_for_the_turns_that_run(database: Database) -> None:
    suite = TurnQueueConformance()
    queue = LedgerQueue(database, clock=SystemClock())
    async with suite.serving(queue) as worker:
        await queue.put(message("1"))
        running = await worker.next()
        draining = asyncio.create_task(queue.drain())
        await queue.put(message("2"))
        for _ in range(20):  # writes are in order: it would be over by now
            await database.run(lambda _: None)
        assert not draining.done()
        running.end()
        await draining
        assert await database.run(lambda db: outbound.outcome(db, message("1"))[0]) == "done"
        assert await database.run(lambda db: outbound.outcome(db, message("2"))[0]) in {"ready", "waiting"}


async def test_turn_that_ends_while_its_worker_stops_is_counted(database: Database) -> None:
    over = list[str]()
    queue = LedgerQueue(database, clock=SystemClock(), on_over=over.append)

    async def stop(_: QueuedTurn) -> None:
        serving.cancel()

    await queue.put(message("1"))
    serving = asyncio.create_task(queue.serve(stop))
    await asyncio.wait([serving])
    assert over == ["done"]


async def test_worker_that_has_lost_its_turn_says_nothing_to_another_session(database: Database) -> None:
    suite = TurnQueueConformance()
    queue = LedgerQueue(database, clock=SystemClock())
    async with suite.serving(queue) as worker:
        await queue.put(message("1"))
        running = await worker.next()
        await database.run(lambda db: db.execute("UPDATE inbox SET worker = 'another'"))
        running.end(message("for ben", "ben"))
        await queue.drain()
        assert not await database.run(partial(ledger.accepted_key, channel="irc", message_id="for ben"))


async def test_message_over_which_the_process_keeps_dying_is_given_up(home: Path) -> None:
    for _ in range(MAX_DEATHS + 1):
        database = Database(SqliteFile(home / "gateway.db"), SystemClock())
        await database.run(lambda db: ledger.put(db, message("1")))
        await database.run(lambda db: ledger.claim(db, "worker", 0.0, 1))
        database.close()
    database = Database(SqliteFile(home / "gateway.db"), SystemClock())
    queue = LedgerQueue(database, clock=SystemClock())
    async with TurnQueueConformance().serving(queue) as worker:
        await worker.expect_nothing_but("a")
        over, reply = await database.run(lambda db: outbound.outcome(db, message("1")))
    database.close()
    assert over
    assert "died 26 times" in reply


async def test_what_has_been_over_for_long_is_removed_and_numbers_go_on_rising(database: Database) -> None:
    queue = LedgerQueue(database, clock=SystemClock())

    async def reply(turn: QueuedTurn) -> OutboundMessage:
        return outbound.reply_to(turn.message, "yes")

    async def prune(now: float) -> None:
        """One row at a time."""
        number: int | None = 0
        while number is not None:
            number = await database.run(partial(ledger.prune_inbox, now=now, keep=100.0, after=number, most=1))
        place: ledger.Place | None = ("", "", 0)
        while place is not None:
            place = await database.run(partial(ledger.prune_outbox, now=now, keep=100.0, after=place, most=1))

    def numbers(db: LedgerConnection) -> list[int]:
        return [each.seq for each in outbound.replies(db, "irc", message("1").chat, 0, 10)]

    async def serve(content: str) -> None:
        await queue.put(message(content))
        serving = asyncio.create_task(queue.serve(reply))
        while (await database.run(lambda db: outbound.outcome(db, message(content))))[0] not in ledger.OVER:
            pass
        serving.cancel()
        await asyncio.wait([serving])
        sent = outbound.OutboxRow(0, outbound.reply_to(message(content), ""), "sent", "")
        await database.run(partial(outbound.save_progress, row=sent))

    await serve("1")
    await serve("2")
    await prune(1000.0)
    await prune(1099.0)
    assert not await queue.put(message("1")), "its id is known"
    assert await database.run(numbers) == [1, 2]
    await prune(1100.0)
    assert await database.run(numbers) == [2], "the last one stays, for its number"
    await serve("3")
    await queue.put(message("4"))
    await prune(1e9)
    assert await database.run(numbers) == [3]
    assert not await queue.put(message("4")), "what waits stays"


async def test_a_turn_costs_the_file_the_same_however_many_messages_are_over(home: Path) -> None:
    database = Database(SqliteFile(home / "gateway.db"), SystemClock())

    def turns(db: Any, contents: Iterable[str]) -> int:
        """The steps of SQLite's machine for a turn of each, one after the other."""
        steps = counter()
        db.set_progress_handler(lambda: next(steps) and 0, 1)
        for content in contents:
            assert ledger.put(db, message(content))
            [turn] = ledger.claim(db, "worker", 0.0, 9)
            assert ledger.controls_for(db, "worker") == []
            assert ledger.finish(db, turn, [], "done")
        db.set_progress_handler(None, 1)
        return next(steps)

    first = await database.run(partial(turns, contents=["first"]))
    await database.run(partial(turns, contents=map(str, range(200))))
    assert await database.run(partial(turns, contents=["last"])) <= 1.2 * first
    database.close()


async def test_open_counts_are_those_of_all_rows_without_what_is_over(database: Database) -> None:
    def play(db: LedgerConnection) -> None:
        for chat in ("ann", "ben", "cyn", "dan"):
            for content in ("1", "2"):
                ledger.put(db, replace(message(content, chat), id=chat + content))
        ended, parked, _, _ = ledger.claim(db, "worker", 0.0, 4)
        ledger.finish(db, ended, [], "done")
        ledger.park(db, parked, [], 1.0)
        for number, state in enumerate(("pending", "sending", "sent")):
            outbound.add_outbound(db, replace(outbound.reply_to(ended.message, "yes"), id=str(number)), state)

    await database.run(play)
    counts = await database.run(ledger.counts)
    assert counts["inbox"] == {"done": 1, "parked": 1, "running": 2, "ready": 1, "waiting": 3}
    found = await database.run(ledger.open_counts)
    assert found["inbox"] == {state: count for state, count in counts["inbox"].items() if state != "done"}
    assert found["outbox"] == {"pending": 1, "sending": 1}


async def test_reply_that_the_database_refuses_fails_its_message_alone(database: Database) -> None:
    queue = LedgerQueue(database, clock=SystemClock(), attempts=1)

    async def reply(turn: QueuedTurn) -> OutboundMessage:
        sent = outbound.reply_to(turn.message, "yes")
        return replace(sent, channel=None) if turn.message.content == "bad" else sent  # type: ignore[arg-type]

    for content, chat in (("bad", "ann"), ("good", "ben")):
        await queue.put(message(content, chat))
    serving = asyncio.create_task(queue.serve(reply))
    states = {}
    while not states.keys() >= {"bad", "good"}:
        for content, chat in (("bad", "ann"), ("good", "ben")):
            state, _ = await database.run(partial(outbound.outcome, message=message(content, chat)))
            if state in ledger.OVER:
                states[content] = state
    serving.cancel()
    await asyncio.wait([serving])
    assert states == {"bad": "failed", "good": "done"}
