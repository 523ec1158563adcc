"""What is over is removed in small steps, while turns go on: a tenth of the rows here, all of them by `make soak`."""

import asyncio
from functools import partial

import psycopg
from tests.soak import share
from tests.worlds.chat.conftest import PATIENCE, message

from denizen.ports import OutboundMessage, QueuedTurn
from denizen.runtime.clock import SystemClock
from denizen.worlds.chat.ledger import outbound
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.ledger.postgres_ledger import PostgresLedger
from denizen.worlds.chat.turns.queue import LedgerQueue

ROWS = share(1_000_000)
OLD = """
INSERT INTO inbox (channel, id, session_key, message, state, over_since)
SELECT 'http', 'old-' || n, 'old-' || mod(n, 1000), repeat('x', 200), 'done', 1 FROM generate_series(1, %s) AS n
"""


async def test_old_messages_are_removed_while_new_ones_are_answered(postgres_url: str) -> None:
    database = Database(PostgresLedger(postgres_url), SystemClock())
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute(OLD, [ROWS])
    queue = LedgerQueue(database, clock=SystemClock())

    async def reply(turn: QueuedTurn) -> OutboundMessage:
        return outbound.reply_to(turn.message, "yes")

    async def states(db: psycopg.AsyncConnection) -> set[str]:
        rows = await db.execute("SELECT DISTINCT state FROM inbox WHERE id LIKE 'new-%'")
        return {state for (state,) in await rows.fetchall()}

    serving = asyncio.create_task(queue.serve(reply))
    cleaning = asyncio.create_task(database.prune(keep=1.0))
    sent = 0
    while not cleaning.done():
        sent += 1
        assert await queue.put(message(f"new-{sent}", f"chat-{sent % 20}", id=f"new-{sent}"))
    await cleaning
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as db:
        async with asyncio.timeout(PATIENCE):
            while await states(db) != {"done"}:  # noqa: ASYNC110 (the server tells nobody)
                await asyncio.sleep(0.02)
        [left] = await (await db.execute("SELECT count(*) FROM inbox WHERE id LIKE 'old-%'")).fetchall()
    serving.cancel()
    await asyncio.wait([serving])
    found = await database.run(partial(outbound.replies, channel="http", chat="chat-1", after=0, most=sent))
    database.close()
    assert left == (0,)
    assert [each.message.in_reply_to for each in found] == [f"new-{n}" for n in range(1, sent + 1) if n % 20 == 1]
