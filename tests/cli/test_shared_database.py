"""The database that a gateway and its workers share is restored, ends connections, is away, or has no more space."""

import asyncio
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest
from tests.cli.gateway import PATIENCE, GatewayProgram, WorkerProgram, share
from tests.cli.model import USAGE, Model, Reply
from tests.cli.test_worker import Held, all_answered_once_in_order, answer_of, insist
from tests.postgres import OwnServer

from denizen.messages import AssistantMessage, ToolCall
from denizen.testing import LoopbackRequest
from denizen.worlds.chat.ledger.postgres_ledger import PostgresLedger

DOCS = Path(__file__).parents[2] / "docs" / "several-machines.md"
END_CONNECTIONS = (
    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def end_connections(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(END_CONNECTIONS)


def calls(tool: str, **args: object) -> Reply:
    return AssistantMessage([ToolCall("", tool, args)], usage=USAGE, stop_reason="tool_calls")


def run_documented(section: str, server: OwnServer, folder: Path) -> None:
    """Run the commands of a section as they stand there, on this server."""
    text = DOCS.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    path = f"{server.programs}{os.pathsep}{os.environ['PATH']}"
    environ = {"PATH": path, "PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": "denizen"}
    for line in text.splitlines():
        if line.startswith("$ "):
            subprocess.run(shlex.split(line[2:]), check=True, cwd=folder, env=environ)


async def test_restored_backup_goes_on_where_it_was_taken(
    home: Path, model: Model, own_postgres: OwnServer, gateway: GatewayProgram, workers: list[WorkerProgram]
) -> None:
    with psycopg.connect(f"{own_postgres.url}/postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE den")
    share(home, f"{own_postgres.url}/den")
    await gateway.start()
    await workers[0].start()
    model.plays(calls("remember", text="The cat is called Miau"), "Kept.")
    model.plays(calls("cron", action="add", text="Feed the cat", kind="every", when="1d"), "Done.")
    for number, content in enumerate(("Remember it", "Feed her daily"), 1):
        await gateway.post("ann", content, id=content)
        await gateway.replies("ann", number)
    held = Held(model, lambda request: f"{str(request.json['messages']).count('Miau')} times Miau")
    before = held.calls
    await gateway.post("ben", "Who is the cat?", id="open")
    await held.wait(before + 1)
    await asyncio.to_thread(run_documented, "Back up, and restore", own_postgres, home.parent)
    await gateway.end(signal.SIGKILL)
    await workers[0].end(signal.SIGKILL)

    (home / "denizen.toml").write_text((home / "denizen.toml").read_text().replace('/den"', '/den2"'))
    await gateway.start()
    await workers[0].start()
    [reply] = await gateway.replies("ben", 1)
    assert reply["in_reply_to"] == "open"
    assert not reply["content"].startswith("0 ")
    assert (await gateway.post("ann", "Remember it", id="Remember it"))[1]["accepted"] is False
    model.plays(calls("cron"), "There is one.")
    await gateway.post("ann", "Which jobs?", id="jobs")
    replies = await gateway.replies("ann", 3)
    assert [(each["seq"], each["content"]) for each in replies] == [(1, "Kept."), (2, "Done."), (3, "There is one.")]
    assert "Feed the cat" in model.told()
    assert "Feed her daily" in str(model.requests[-1])


async def test_connections_that_the_server_ends_lose_and_double_nothing(
    shared: str, model: Model, gateway: GatewayProgram, workers: list[WorkerProgram]
) -> None:
    calls = 0

    def answer(request: LoopbackRequest) -> str:
        nonlocal calls
        calls += 1
        if calls in {3, 9, 16}:
            end_connections(shared)
        return answer_of(request)

    model.server.otherwise = answer
    await gateway.start()
    await workers[0].start()
    await all_answered_once_in_order(gateway)
    assert gateway.is_running
    assert workers[0].is_running


async def test_gateway_ends_where_another_began_while_it_had_no_connection(
    shared: str, model: Model, gateway: GatewayProgram
) -> None:
    await gateway.start()
    os.kill(gateway.pid, signal.SIGSTOP)
    await asyncio.to_thread(end_connections, shared)
    other = PostgresLedger(shared, sole=True)
    os.kill(gateway.pid, signal.SIGCONT)
    assert await asyncio.wait_for(gateway.process.wait(), PATIENCE) == 1
    assert re.search(rf"has another gateway \(denizen gateway \w+, process {os.getpid()} on ", gateway.log)
    assert "ExceptionGroup" not in gateway.log
    other.close()


async def test_programs_stop_while_the_database_is_away(
    home: Path, own_postgres: OwnServer, gateway: GatewayProgram, workers: list[WorkerProgram]
) -> None:
    share(home, f"{own_postgres.url}/postgres")
    await gateway.start()
    await workers[0].start()
    own_postgres.stop()
    assert await gateway.end() == 0, gateway.log
    assert await workers[0].end() == 0, gateway.log


@pytest.fixture
def small_disk(own_postgres: OwnServer) -> Iterator[Path]:
    """A file system of 32 MB that the server can write to."""
    disk = own_postgres.folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m", "none", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a file system")
    shutil.chown(disk, "postgres", "postgres")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


async def test_full_disk_of_the_server_refuses_messages_and_loses_none(
    home: Path, model: Model, small_disk: Path, own_postgres: OwnServer, gateway: GatewayProgram
) -> None:
    with psycopg.connect(f"{own_postgres.url}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE TABLESPACE small LOCATION '{small_disk}'".encode())
        connection.execute("CREATE DATABASE den TABLESPACE small")
    share(home, f"{own_postgres.url}/den")
    held = Held(model)
    await gateway.start()
    await gateway.post("ann", "hi", id="open")
    await held.wait()
    filler = small_disk / "filler"
    filler.write_bytes(bytes(shutil.disk_usage(small_disk).free))
    accepted, status, answer = 0, 202, {}
    while status == 202:
        accepted += 1
        status, answer = await gateway.post("ben", "b" * 20_000, id=f"b{accepted}")
    assert status == 503
    assert "No space left on device. Free some space there" in answer["error"]["message"]
    held.go_on()
    filler.unlink()
    await insist(partial(gateway.post, "ben", "b" * 20_000, id=f"b{accepted}"))
    assert [reply["in_reply_to"] for reply in await gateway.replies("ann", 1)] == ["open"]
    replies = await gateway.replies("ben", accepted)
    assert [reply["in_reply_to"] for reply in replies] == [f"b{number}" for number in range(1, accepted + 1)]
