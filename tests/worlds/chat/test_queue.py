"""The queue on the ledger passes the suite for turn queues."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from denizen.clock import SystemClock
from denizen.testing import TurnQueueConformance
from denizen.testing.conformance_queue import NewQueue
from denizen.worlds.chat.database import Database
from denizen.worlds.chat.queue import LedgerQueue


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "gateway.db")
    yield opened
    opened.close()


class TestLedgerQueue(TurnQueueConformance):
    @pytest.fixture
    def new_queue(self, database: Database) -> NewQueue:
        return lambda: LedgerQueue(database, clock=SystemClock(), retry_after=0.0)
