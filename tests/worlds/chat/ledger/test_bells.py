"""Workers on a PostgreSQL server: whatever is rung for is claimed, or rung for again."""

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import psycopg
import pytest
from tests.worlds.chat.conftest import PATIENCE, QUICK, key_of, message

from denizen.runtime.clock import SystemClock
from denizen.worlds.chat.ledger import ledger
from denizen.worlds.chat.ledger.bells import JobClaimer
from denizen.worlds.chat.ledger.database import DEFAULT_TIMING, Database, TurnClaimer, WorkerTiming
from denizen.worlds.chat.ledger.ledger import Claim
from denizen.worlds.chat.ledger.postgres_ledger import PostgresLedger


class Rung:
    """A worker, and the bell that rings for it."""

    def __init__(self, database: Database, bell: asyncio.Event, worker: TurnClaimer) -> None:
        self.database = database
        self.worker = worker
        self._bell = bell

    async def put(self, content: str) -> None:
        assert await self.database.run(partial(ledger.put, message=message(content)))

    async def heard(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._bell.wait()
        self._bell.clear()

    async def claim(self) -> list[Claim]:
        return await self.database.run(lambda db: self.worker.claim(db, (), 0.0, 4))


@asynccontextmanager
async def working(url: str, timing: WorkerTiming = DEFAULT_TIMING, turns: int = 4) -> AsyncGenerator[Rung]:
    database, bell = Database(PostgresLedger(url, timing=timing), SystemClock()), asyncio.Event()
    try:
        async with database.worker(bell, turns) as worker:
            yield Rung(database, bell, worker)
    finally:
        database.close()


async def test_a_bell_that_rings_while_nothing_was_found_is_answered(postgres_url: str) -> None:
    async with working(postgres_url) as rung:
        await rung.put("first")
        await rung.heard()
        [others] = await rung.database.run(lambda db: ledger.claim(db, "another worker", 0.0, 1))
        await rung.database.run(lambda db: ledger.finish(db, others, (), "done"))
        assert await rung.claim() == []
        await rung.put("second")
        rung.worker.began([])
        await rung.heard()
        assert [claim.message.content for claim in await rung.claim()] == ["second"]


async def test_bell_that_its_first_worker_leaves_is_heard_by_another(postgres_url: str) -> None:
    async with working(postgres_url, WorkerTiming(poll=3600.0)) as rung:
        claimer = rung.worker
        assert isinstance(claimer, JobClaimer)
        await rung.put("first")
        await rung.heard()
        [claim] = claims = await rung.claim()
        claimer.began(claims)
        claimer.workers = [own := claimer.registered_as or 0, own + 1]
        first_heard = [claimer.is_first_for(f'{{"type": "job_inserted", "job_id": {job}}}') for job in range(4)]
        assert first_heard == [True, False, True, False]
        for content in ("second", "third"):
            await rung.database.run(partial(ledger.finish, turn=claim, heard=(), state="done"))
            claimer.ended(key_of("ann"))
            await rung.put(content)
            await rung.heard()
            [claim] = claims = await rung.claim()
            claimer.began(claims)
            assert claim.message.content == content


@pytest.mark.parametrize("rests_first", [True, False])
async def test_a_turn_that_begins_while_the_worker_goes_to_rest_is_run(postgres_url: str, rests_first: bool) -> None:
    async with working(postgres_url) as rung:
        await rung.put("hi")
        await rung.heard()
        claims = await rung.claim()
        resting = asyncio.create_task(rung.worker.stop_claiming())
        await (resting if rests_first else asyncio.sleep(0))
        rung.worker.began(claims)
        await resting
        rung.worker.ended(key_of("ann"))


async def test_a_job_that_another_worker_has_ended_is_no_error(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with working(postgres_url, turns=1) as rung:
        await rung.put("first")
        await rung.heard()
        [claim] = claims = await rung.claim()
        rung.worker.began(claims)
        with psycopg.connect(postgres_url) as other:
            other.execute("DELETE FROM procrastinate_jobs")
        await rung.database.run(lambda db: ledger.finish(db, claim, (), "done"))
        await rung.put("second")
        rung.worker.ended(key_of("ann"))
        await rung.heard()
        gc.collect()  # asyncio logs an error that nobody took when its task goes
    assert not caplog.records


async def left_by_a_dead_worker(url: str) -> None:
    """A turn that runs, and its bell."""
    database = Database(PostgresLedger(url), SystemClock())
    await database.run(lambda db: ledger.put(db, message("hi")))
    await database.run(lambda db: ledger.claim(db, "a dead worker", 0.0, 1))
    database.close()
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("UPDATE procrastinate_jobs SET status = 'doing'")


async def test_a_job_that_ends_just_now_holds_up_no_takeover(postgres_url: str) -> None:
    await left_by_a_dead_worker(postgres_url)
    with psycopg.connect(postgres_url) as other, psycopg.connect(postgres_url, autocommit=True) as watch:
        other.execute("DELETE FROM procrastinate_jobs")
        async with working(postgres_url, QUICK) as rung:
            async with asyncio.timeout(PATIENCE):
                while watch.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone() is None:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            other.commit()
            await rung.heard()
            assert [claim.deaths for claim in await rung.claim()] == [1]


async def test_jobs_of_other_queues_are_left_alone(postgres_url: str) -> None:
    await left_by_a_dead_worker(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, args, status) "
            "SELECT 'another', task_name, args, status FROM procrastinate_jobs"
        )
        async with working(postgres_url, QUICK) as rung:
            await rung.heard()  # the turn is taken over
        left = other.execute("SELECT status::text FROM procrastinate_jobs WHERE queue_name = 'another'")
        assert left.fetchall() == [("doing",)]
