"""The ledger's file: private, for one process, written together."""

import asyncio
import os
import sqlite3
import stat
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.chat.conftest import key_of, message

from denizen.config.lock_file import holder_of
from denizen.errors import ConfigError
from denizen.ports import OutboundMessage
from denizen.runtime.clock import SystemClock
from denizen.worlds.chat.ledger import ledger, outbound
from denizen.worlds.chat.ledger.database import Database, LedgerRefused
from denizen.worlds.chat.ledger.ledger import LedgerConnection
from denizen.worlds.chat.ledger.sqlite_file import SqliteFile


def broken(_: LedgerConnection) -> None:
    raise KeyError("mine")


async def test_an_operation_that_raises_is_undone_and_leaves_the_others(database: Database) -> None:
    def half(db: LedgerConnection) -> None:
        ledger.put(db, message("half"))
        broken(db)

    put = [database.run(partial(ledger.put, message=message(str(number)))) for number in range(5)]
    results = await asyncio.gather(*put[:2], database.run(half), *put[2:], return_exceptions=True)
    assert [result for result in results if result in {"ready", "waiting"}] == ["ready", *["waiting"] * 4]
    assert isinstance(results[2], KeyError)
    assert not await database.run(partial(ledger.accepted_key, channel="http", message_id="half"))


async def test_an_operation_that_the_database_refuses_fails_alone(database: Database) -> None:
    def refused(db: LedgerConnection) -> None:
        ledger.put(db, message("half"))
        db.execute("INSERT INTO cron (id, job) VALUES (?, ?)", ["without a job", None])

    put = [database.run(partial(ledger.put, message=message(str(number)))) for number in range(5)]
    results = await asyncio.gather(*put[:2], database.run(refused), *put[2:], return_exceptions=True)
    assert isinstance(results.pop(2), LedgerRefused)
    assert sorted(map(str, results)) == ["ready", *["waiting"] * 4]
    assert not await database.run(partial(ledger.accepted_key, channel="http", message_id="half"))


async def test_a_look_waits_for_no_writer(database: Database) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def write(db: LedgerConnection) -> None:
        ledger.put(db, message("1"))
        begun.set()
        go_on.wait()

    writing = asyncio.create_task(database.run(write))
    await asyncio.to_thread(begun.wait)
    assert await database.read(ledger.next_due) is None
    go_on.set()
    await writing
    assert await database.read(ledger.next_due) == 0.0


class CountedFile(SqliteFile):
    transactions = 0

    @contextmanager
    def transaction(self) -> Generator[Any]:
        self.transactions += 1
        with super().transaction() as db:
            yield db


async def test_what_comes_before_a_transaction_is_over_joins_it(home: Path) -> None:
    file = CountedFile(home / "gateway.db")
    database = Database(file, SystemClock())
    begun, go_on = threading.Event(), threading.Event()

    def wait(_: LedgerConnection) -> None:
        begun.set()
        go_on.wait()

    first = asyncio.create_task(database.run(wait))
    await asyncio.to_thread(begun.wait)
    second = asyncio.create_task(database.run(partial(ledger.put, message=message("1"))))
    await asyncio.sleep(0)
    go_on.set()
    assert await asyncio.gather(first, second) == [None, "ready"]
    database.close()
    assert file.transactions == 1


def test_files_are_private_and_another_gateway_is_refused(home: Path) -> None:
    path = home / "gateway.db"
    assert not holder_of(home / "gateway.lock")
    first = Database(SqliteFile(path), SystemClock())
    assert {stat.S_IMODE(file.stat().st_mode) for file in home.iterdir()} == {0o600}
    assert holder_of(home / "gateway.lock") == os.getpid()
    with pytest.raises(ConfigError, match="running on this home already"):
        Database(SqliteFile(path), SystemClock())
    first.close()
    assert not holder_of(home / "gateway.lock")
    Database(SqliteFile(path), SystemClock()).close()


async def test_file_that_is_damaged_where_nothing_looked_yet_is_refused(home: Path) -> None:
    database = Database(SqliteFile(home / "gateway.db"), SystemClock())
    for number in range(200):
        await database.run(partial(ledger.put, message=message("x" * 500 + str(number))))
    database.close()
    data = bytearray((home / "gateway.db").read_bytes())
    data[len(data) // 2 : len(data) // 2 + 5_000] = bytes(5_000)
    (home / "gateway.db").write_bytes(data)
    with pytest.raises(ConfigError, match="can't be opened"):
        SqliteFile(home / "gateway.db")


async def test_file_of_the_first_version_goes_on_where_it_was(home: Path) -> None:
    with sqlite3.connect(home / "gateway.db") as db:
        db.executescript(ledger.SCHEMA.format(serial="INTEGER PRIMARY KEY AUTOINCREMENT") + "PRAGMA user_version = 1")
        for content, state in (("1", "running"), ("2", "waiting")):
            text = ledger.to_json(message(content))
            row = ("http", content, key_of("ann"), text, state)
            db.execute("INSERT INTO inbox (channel, id, session_key, message, state) VALUES (?, ?, ?, ?, ?)", row)
    db.close()
    database, done = Database(SqliteFile(home / "gateway.db"), SystemClock()), list[str]()
    while claims := await database.run(partial(ledger.claim, worker="w", now=0.0, most=9)):
        [turn] = claims
        assert await database.run(partial(ledger.finish, turn=turn, heard=(), state="done"))
        done.append(turn.message.content)
    assert done == ["1", "2"]
    database.close()


async def test_message_of_the_second_version_is_sent(home: Path) -> None:
    serial = "INTEGER PRIMARY KEY AUTOINCREMENT"
    with sqlite3.connect(home / "gateway.db") as db:
        db.executescript(ledger.SCHEMA.format(serial=serial) + ledger.SCHEMA_2 + "PRAGMA user_version = 2")
        row = ("irc", "den", 1, "m1", ledger.to_json(OutboundMessage("irc", "den", "hello", id="m1")), "sending")
        db.execute("INSERT INTO outbox (channel, chat, seq, id, message, state) VALUES (?, ?, ?, ?, ?, ?)", row)
    db.close()
    database = Database(SqliteFile(home / "gateway.db"), SystemClock())
    row = (await database.read(partial(outbound.first_unsent, chats=[("irc", "den")])))["irc", "den"]
    assert (row.message.content, row.state, row.parts, row.native_id, row.waits_since) == ("hello", "sending", 0, "", 0)
    database.close()


def test_file_of_a_later_version_and_a_damaged_one_are_refused(home: Path) -> None:
    database = Database(SqliteFile(home / "gateway.db"), SystemClock())
    database.close()
    with_version = (home / "gateway.db").read_bytes()
    (home / "gateway.db").write_bytes(with_version[:60] + (99).to_bytes(4, "big") + with_version[64:])
    with pytest.raises(ConfigError, match="later version"):
        Database(SqliteFile(home / "gateway.db"), SystemClock())
    (home / "gateway.db").write_bytes(b"no database" * 100)
    with pytest.raises(ConfigError, match="can't be opened"):
        Database(SqliteFile(home / "gateway.db"), SystemClock())
