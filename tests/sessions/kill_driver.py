"""A program that works with the session `work` in PostgreSQL and kills itself at a given step: for the kill matrix.

    kill_driver.py URL STEP

Steps are the moments before and after each statement. STEP 0 runs to the end. Each entry that is kept is printed.
"""

import asyncio
import os
import signal
import sys
from typing import Any, LiteralString

from denizen.runtime.clock import SystemClock
from denizen.sessions.postgres import PostgresStore
from denizen.sessions.tables import SharedTables
from denizen.testing.conformance_store import said

URL, STEP = sys.argv[1], int(sys.argv[2])


class MortalTables(SharedTables):
    """Tables that count statements, and die at the step they were told."""

    steps = 0

    def passed(self) -> None:
        self.steps += 1
        if self.steps == STEP:
            os.kill(os.getpid(), signal.SIGKILL)

    async def fetch(self, statement: LiteralString, /, **values: object) -> list[Any]:
        self.passed()
        rows = await super().fetch(statement, **values)
        self.passed()
        return rows


async def main() -> None:
    store = PostgresStore(MortalTables(URL), clock=SystemClock())
    session = await store.open("work")
    for number in range(3):
        await session.append(said(str(number)))
        print(number, flush=True)
    await session.close()
    await store.fork("work", "other")


asyncio.run(main())
