"""A program that works through a few messages and kills itself at a given step: what the kill matrix runs.

    kill_driver.py PLACE CHAT STEP

PLACE is a folder, or the URL of a database; the messages are in CHAT, and in that with an s. Steps are the moments
before and after each transaction of the ledger. STEP 0 runs to the end.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from denizen.ports import InboundMessage, OutboundMessage, QueuedTurn
from denizen.runtime.clock import SystemClock
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.ledger import ledger, outbound
from denizen.worlds.chat.ledger.database import Database, WorkerTiming
from denizen.worlds.chat.ledger.postgres_ledger import PostgresLedger
from denizen.worlds.chat.ledger.sqlite_file import SqliteFile
from denizen.worlds.chat.turns.queue import LedgerQueue

PLACE, CHATS, STEP = sys.argv[1], (sys.argv[2], f"{sys.argv[2]}s"), int(sys.argv[3])
QUICK = WorkerTiming(heartbeat=0.2, stalled=0.6, poll=0.1)
MESSAGES = [
    InboundMessage("irc", chat, chat, content, f"key-{chat}", id=f"{chat}-{content}")
    for chat, content in ((CHATS[0], "1"), (CHATS[1], "1"), (CHATS[0], "2"))
]


class MortalDatabase(Database):
    """A database that counts transactions, and dies at the step it was told."""

    steps = 0

    def passed(self) -> None:
        self.steps += 1
        if self.steps == STEP:
            os.kill(os.getpid(), signal.SIGKILL)

    def _commit(self, first: Any) -> None:
        self.passed()
        super()._commit(first)
        self.passed()


async def main() -> None:
    on_server = PLACE.startswith("postgresql://")
    backend = PostgresLedger(PLACE, timing=QUICK) if on_server else SqliteFile(Path(PLACE) / "gateway.db")
    database = MortalDatabase(backend, SystemClock())
    outbox = Outbox(database, {}, clock=SystemClock())
    queue = LedgerQueue(database, clock=SystemClock(), on_reply=outbox.added)
    other = LedgerQueue(database, clock=SystemClock(), on_reply=outbox.added)

    async def handle(turn: QueuedTurn) -> OutboundMessage:
        return outbound.reply_to(turn.message, f"re {turn.message.content}")

    for message in MESSAGES[:2]:
        await queue.put(message)
    serving = [asyncio.create_task(each.serve(handle)) for each in (queue, other)]
    for message in MESSAGES[2:]:
        await other.put(message)
    for message in MESSAGES:
        await outbox.outcome(message, ledger.OVER)
    for task in serving:
        task.cancel()
    await asyncio.wait(serving)
    for chat in CHATS:
        for reply in await database.run(lambda db, each=chat: outbound.replies(db, "irc", each, 0, 100)):
            print(reply.seq, reply.message.in_reply_to, reply.message.content, reply.state)
    database.close()


asyncio.run(main())
