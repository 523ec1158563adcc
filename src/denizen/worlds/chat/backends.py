"""The ledger and the sessions that the processes of a gateway share."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from denizen.config.extras import how_to_install
from denizen.config.home import places, private_folder
from denizen.config.lock_file import lock
from denizen.config.redact import Redactor
from denizen.config.settings import Config
from denizen.entries import EndEntry
from denizen.errors import ConfigError
from denizen.memory import LongTermMemory, open_memory
from denizen.ports import Budget, SessionStore
from denizen.runtime.clock import Clock
from denizen.runtime.postgres import PostgresDatabase
from denizen.sessions import JsonlStore
from denizen.sessions.jsonl import ACKNOWLEDGED_ELSEWHERE
from denizen.sessions.search_index import SearchIndex
from denizen.sessions.spend import Spend, Sums
from denizen.text.plural import counted
from denizen.worlds.chat.events.relay import SideChannel
from denizen.worlds.chat.ledger.database import Database, WorkerTiming
from denizen.worlds.chat.ledger.sqlite_file import BUSY, SqliteFile
from denizen.worlds.chat.settings import GatewaySettings

if TYPE_CHECKING:
    from denizen.sessions.tables import SharedTables

WRITE_RETRY_S = 5.0
"""Seconds between attempts to write an entry that the disk or the database refuses."""


class Backends(NamedTuple):
    """The ledger, the sessions, and the other parts that a database shares; None for those kept in the home."""

    ledger: Database
    sessions: SessionStore
    memory: LongTermMemory | None = None
    budget: Budget | None = None
    side: SideChannel | None = None
    sums: Sums | None = None
    search: SearchIndex | None = None


@asynccontextmanager
async def open_backends(
    config: Config,
    clock: Clock,
    redactor: Redactor,
    *,
    is_gateway: bool,
    timing: WorkerTiming,
    new_ledger: bool = False,
) -> AsyncGenerator[Backends]:
    """Open `gateway.database`, or the home's files. Raises ConfigError, also for a second gateway.

    If the ledger is missing although the gateway has sessions, only `new_ledger` starts an empty one.
    """
    (home, _), settings = places(config), config.section("gateway", GatewaySettings)
    url, pooler = settings.database, settings.pooler
    with ExitStack() as stack:
        if not url:
            files = JsonlStore(
                home / "sessions", clock=clock, redactor=redactor, synced=ACKNOWLEDGED_ELSEWHERE, retry_s=WRITE_RETRY_S
            )
            if not new_ledger:
                await _check_ledger(home / "gateway.db", files)
            database = Database(SqliteFile(home / "gateway.db"), clock)
            stack.callback(database.close)
            yield Backends(database, files)
            return
        try:
            from denizen.sessions.postgres import PostgresStore
            from denizen.sessions.search_table import SearchTable
            from denizen.sessions.spend_table import SpendTable
            from denizen.sessions.tables import SharedTables
            from denizen.worlds.chat.ledger.postgres_ledger import PostgresLedger, notify
        except ModuleNotFoundError as missing:
            raise ConfigError(
                f"PostgreSQL needs packages that aren't installed: {how_to_install('postgres')}"
            ) from missing
        if is_gateway:
            private_folder(home)
            stack.callback(os.close, lock(home / "gateway.lock", BUSY))
        backend = await asyncio.to_thread(PostgresLedger, url, pooler=pooler, sole=is_gateway, timing=timing)
        database = Database(backend, clock)
        stack.callback(database.close)
        shared_url, is_pooled = pooler or url, bool(pooler)
        tables = SharedTables(shared_url, is_pooled=is_pooled)
        notes = PostgresDatabase(shared_url, is_pooled=is_pooled)
        stack.callback(tables.close)
        await asyncio.to_thread(tables.prepare)
        memory = open_memory(config, clock=clock, redact=redactor.text, with_notes=True, database=notes)
        stack.callback(memory.close)
        sessions = PostgresStore(
            tables,
            clock=clock,
            redactor=redactor,
            lease=timing.stalled,
            synced=ACKNOWLEDGED_ELSEWHERE | {EndEntry},  # nothing is left to sync after a turn
            retry_s=WRITE_RETRY_S,
        )
        database.news["connections"] = lambda _: _close_unused(tables, memory)
        side = SideChannel(partial(notify, tables), timing)
        sums = SpendTable(tables)
        yield Backends(database, sessions, memory, Spend(config, sums, clock), side, sums, SearchTable(tables))


def _close_unused(tables: "SharedTables", memory: LongTermMemory) -> None:
    """Give connections back that nothing needed for a while: the server has few."""
    tables.close_unused()
    memory.close()


async def _check_ledger(path: Path, sessions: SessionStore) -> None:
    """Raises ConfigError for a ledger that is missing, or empty, while its sessions are there."""
    if path.exists() and path.stat().st_size:
        return
    if served := sum(each.profile == "gateway" for each in await sessions.list()):
        raise ConfigError(
            f"{path} is missing, but the home has {counted(served, 'session')} of the gateway. Restore a backup, or "
            "start with an empty ledger, without its messages, jobs and ids: denizen gateway --new-ledger"
        )
