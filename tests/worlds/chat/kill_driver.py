"""A program that works through a few messages and kills itself at a given step: what the kill matrix runs.

    kill_driver.py FOLDER STEP

Steps are the moments before and after each transaction of the ledger. STEP 0 runs to the end.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

from denizen.clock import SystemClock
from denizen.ports import InboundMessage, OutboundMessage, QueuedTurn
from denizen.worlds.chat import ledger
from denizen.worlds.chat.database import Database
from denizen.worlds.chat.queue import LedgerQueue

FOLDER, STEP = Path(sys.argv[1]), int(sys.argv[2])
MESSAGES = [
    InboundMessage("irc", chat, chat, content, f"key-{chat}", id=f"{chat}-{content}")
    for chat, content in (("ann", "1"), ("ben", "1"), ("ann", "2"))
]


class MortalDatabase(Database):
    """A database that counts transactions, and dies at the step it was told."""

    steps = 0

    def passed(self) -> None:
        self.steps += 1
        if self.steps == STEP:
            os.kill(os.getpid(), signal.SIGKILL)

    def _commit(self, batch: Any) -> None:
        self.passed()
        super()._commit(batch)
        self.passed()


async def main() -> None:
    database = MortalDatabase(FOLDER / "gateway.db", SystemClock())
    queue = LedgerQueue(database, clock=SystemClock())
    other = LedgerQueue(database, clock=SystemClock())

    async def handle(turn: QueuedTurn) -> OutboundMessage:
        return ledger.reply_to(turn.message, f"re {turn.message.content}")

    for message in MESSAGES[:2]:
        await queue.put(message)
    serving = [asyncio.create_task(each.serve(handle)) for each in (queue, other)]
    for message in MESSAGES[2:]:
        await other.put(message)
    while not await database.run(lambda db: all(ledger.outcome(db, each)[0] in ledger.OVER for each in MESSAGES)):
        pass
    for task in serving:
        task.cancel()
    await asyncio.wait(serving)
    for chat in ("ann", "ben"):
        for reply in await database.run(lambda db, each=chat: ledger.replies(db, "irc", each, 0, 100)):
            print(reply.seq, reply.message.in_reply_to, reply.message.content, reply.state)
    database.close()


asyncio.run(main())
