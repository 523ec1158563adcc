"""Homes and databases that earlier versions left, killed in the middle of a turn, go on with this one."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.cli.conftest import Run
from tests.cli.gateway import GatewayProgram, share
from tests.cli.model import Model

from denizen.messages import AssistantMessage, ToolCall

DATA = Path(__file__).parents[1] / "data"
HOMES = sorted((DATA / "homes").iterdir())
DATABASES = sorted((DATA / "databases").iterdir())


@pytest.fixture(params=HOMES, ids=lambda path: path.name)
def old_home(request: pytest.FixtureRequest, home: Path, model: Model) -> Path:
    """A copy of a home that an earlier version left, with the model of this test."""
    shutil.copytree(request.param, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns("denizen.toml"))
    for path in (home, *home.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)  # git keeps no modes
    return home


@pytest.fixture(params=DATABASES, ids=lambda path: path.stem)
def old_database(request: pytest.FixtureRequest, home: Path, model: Model, postgres_url: str) -> str:
    """A database that an earlier version left, and a new home that names it."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(request.param.read_bytes())
    share(home, postgres_url)
    return postgres_url


async def goes_on(gateway: GatewayProgram, model: Model) -> None:
    """What was open is answered, in order; the rest is known: ids, replies, jobs, facts, and the waiting question."""
    model.server.otherwise = lambda request: f"heard: {request.json['messages'][-1]['content']}"
    await gateway.start()
    first, second = await gateway.replies("ben", 2)
    assert ("Who is the cat?" in first["content"], "And who are you?" in second["content"]) == (True, True)
    assert [each["in_reply_to"] for each in (first, second)] == ["ben-1", "ben-2"]
    assert [each["content"] for each in await gateway.replies("ann", 2)] == ["I remember it.", "Scheduled."]
    assert (await gateway.post("ann", "The cat is called Miau", id="ann-1"))[1]["accepted"] is False
    await gateway.post("ann", "Who?", id="ann-3")
    assert "Who?" in (await gateway.replies("ann", 3))[-1]["content"]
    assert "Miau" in str(model.requests[-1])
    model.plays(AssistantMessage([ToolCall("", "cron", {})], stop_reason="tool_calls"))
    await gateway.post("ann", "Which jobs?", id="ann-4")
    assert "Feed the cat" in (await gateway.replies("ann", 4))[-1]["content"]
    await gateway.post("cleo", "yes", id="cleo-2")
    assert "Created note.txt" in (await gateway.replies("cleo", 2))[-1]["content"]


async def test_home_of_an_earlier_version_goes_on(
    old_home: Path, model: Model, gateway: GatewayProgram, denizen: Run
) -> None:
    listed = [json.loads(line) for line in denizen("sessions", "list", "--json").out.splitlines()]
    assert {each["key"].rpartition(":")[2] for each in listed} == {"ann", "ben", "cleo", "shop"}
    assert all(each["cost_usd"] for each in listed if not each["key"].endswith(("ben", "cleo")))
    assert "It is a shop." in denizen("sessions", "show", "shop").out
    model.plays("A small one.")
    ran = denizen("ask", "--session", "shop", "What kind?", cwd=old_home)
    assert (ran.status, ran.out) == (0, "A small one.\n")
    assert "It is a shop." in str(model.requests[-1])
    assert "Miau" in denizen("memory", "list").out
    await goes_on(gateway, model)
    with closing(sqlite3.connect(old_home / "spend.db")) as spent:
        assert spent.execute("SELECT count(*) FROM spend").fetchone()[0]


async def test_database_of_an_earlier_version_goes_on(old_database: str, model: Model, gateway: GatewayProgram) -> None:
    await goes_on(gateway, model)
    with psycopg.connect(old_database) as connection:
        assert connection.execute("SELECT count(*) FROM spend").fetchone() == (2,)
