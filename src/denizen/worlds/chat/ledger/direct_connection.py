"""The one connection of a process that can't go through a pooler: it listens, and holds a gateway's lock."""

import asyncio
import os
import secrets
import select
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from denizen.errors import ConfigError
from denizen.runtime.postgres import PostgresDatabase
from denizen.worlds.chat.ledger.database import LedgerError, LedgerTaken

_GATEWAY = 0x64656E67617465
"""The advisory lock of the gateway."""
_LOCK_TRIES, _LOCK_WAIT_S = 10, 0.1
_RETRY_S = 1.0
"""Seconds between attempts to reach the server."""
_POLL_S = 15.0
"""Seconds without news after which a process looks for notifications that it may have missed."""
_UNKNOWN = "unknown"
"""The name of a holder that has released the lock in the meantime."""
_HUNG_UP = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)


class _Listener(NamedTuple):
    channels: list[str]
    hear: Callable[[str, str], Awaitable[None]]
    look: Callable[[], None]


class DirectConnection:
    """A connection to the server itself. With `is_gateway` it holds the lock of the database's only gateway.

    Raises ConfigError if the database can't be used, or already has a gateway.
    """

    def __init__(self, server: PostgresDatabase, *, is_gateway: bool) -> None:
        self._server = server
        self.is_gateway = is_gateway
        self._id = secrets.token_hex(4)  # two containers may have the same name and process
        kind, where = "gateway" if is_gateway else "worker", f"process {os.getpid()} on {socket.gethostname()}"
        self._name = f"denizen {kind} {self._id}, {where}"  # the server truncates it
        self._renewing = threading.Lock()
        self._listeners: list[_Listener] = []
        self._pump: asyncio.Task[None] | None = None
        with server.explained(ConfigError):
            self._db = self._connect()
            for _ in range(_LOCK_TRIES):  # one that was killed may hold it for a moment
                if not (other := self._other_gateway(self._db)):
                    return
                time.sleep(_LOCK_WAIT_S)
        self._db.close()
        raise ConfigError(
            f"The database at {server.name} has a gateway already ({other}). Stop that one first; more turns at once "
            "run in `denizen worker`."
        )

    def renew(self) -> None:
        """Reconnect if the connection has ended, and lock the gateway again. Raises LedgerError if that fails."""
        with self._renewing, self._server.explained(LedgerError):
            if not self._is_over():
                return
            db = self._connect()
            if other := self._other_gateway(db):
                db.close()
                where = f"The database at {self._server.name}"
                if other == _UNKNOWN or self._id in other:
                    raise LedgerError(f"{where} hasn't yet released this gateway's last connection.")
                raise LedgerTaken(
                    f"{where} has another gateway ({other}), which started while this one had no connection. This one "
                    "ends; the other has taken over its turns and messages."
                )
            over, self._db = self._db, db
            if self._pump is None:  # otherwise `_hear` closes it
                over.close()

    async def listen(
        self, channels: Iterable[str], hear: Callable[[str, str], Awaitable[None]], look: Callable[[], None]
    ) -> None:
        """Until cancelled, call `hear` for each notification, and `look` whenever one may have been missed."""
        listener = _Listener([*channels], hear, look)
        self._listeners.append(listener)
        try:
            await self._cancel_pump()  # it starts again with all listeners
            self._pump = asyncio.create_task(self._run())
            await asyncio.Event().wait()
        finally:
            self._listeners.remove(listener)
            if not self._listeners:
                await self._cancel_pump()

    def close(self) -> None:
        """Release the lock, and disconnect."""
        self._db.close()

    def _is_over(self) -> bool:
        """Whether the server has closed the connection, without a round trip."""
        if self._db.closed:
            return True
        poll = select.poll()
        poll.register(self._db.fileno(), _HUNG_UP)
        return bool(poll.poll(0))

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        db = self._server.connect()
        db.execute("SELECT set_config('application_name', %s, false)", [self._name])
        return db

    def _other_gateway(self, db: psycopg.Connection[tuple[Any, ...]]) -> str:
        """The name of another gateway that holds the lock; empty: the connection has it, or needs none."""
        if not self.is_gateway or db.execute("SELECT pg_try_advisory_lock(%s)", [_GATEWAY]).fetchone() == (True,):
            return ""
        name = db.execute(
            "SELECT application_name FROM pg_stat_activity JOIN pg_locks USING (pid) "
            "WHERE locktype = 'advisory' AND granted AND datname = current_database() "
            "AND (classid::bigint << 32) + objid::bigint = %s",
            [_GATEWAY],
        ).fetchone()
        return name[0] if name else _UNKNOWN

    async def _cancel_pump(self) -> None:
        pump, self._pump = self._pump, None
        if pump and pump.get_loop() is asyncio.get_running_loop():
            pump.cancel()
            await asyncio.wait([pump])

    async def _run(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self.renew)
                await self._hear(self._db)
            except (psycopg.Error, LedgerError):
                await asyncio.sleep(_RETRY_S)

    async def _hear(self, db: psycopg.Connection[tuple[Any, ...]]) -> None:
        for channel in {channel for listener in self._listeners for channel in listener.channels}:
            db.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
        arrived, loop, number = asyncio.Event(), asyncio.get_running_loop(), db.fileno()
        loop.add_reader(number, arrived.set)
        try:
            while True:
                for listener in self._listeners:
                    listener.look()
                try:
                    while True:
                        await asyncio.wait_for(arrived.wait(), _POLL_S)
                        arrived.clear()
                        db.pgconn.consume_input()
                        while news := db.pgconn.notifies():
                            for listener in [*self._listeners]:
                                await listener.hear(news.relname.decode(), news.extra.decode())
                except TimeoutError:
                    continue
        finally:
            loop.remove_reader(number)
            if db is not self._db:
                db.close()
