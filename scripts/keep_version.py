"""Keep a home and a database as this version leaves them: the tests of later versions open them. Run for each release.

python -m scripts.keep_version

Writes tests/data/homes/VERSION/ and tests/data/databases/VERSION.sql. Gateway and commands are real; the model is a
script. The gateway is killed with an open turn, another message behind it, and a question that waits.
"""

import asyncio
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from tests.cli.gateway import GatewayProgram, share
from tests.cli.model import USAGE, Model
from tests.postgres import OwnServer, binaries, new_database

from denizen.messages import AssistantMessage, ToolCall
from denizen.testing import LoopbackOpenAI, Step

DATA = Path(__file__).parents[1] / "tests" / "data"
PLACE = Path("/tmp/denizen")
"""The same everywhere: sessions name it."""
MODEL_URL = "http://127.0.0.1:9/v1"
"""Stands for the model in what is kept; nobody listens there."""
SETTINGS = """\
model = "test:scripted"

[providers.test]
base_url = "{url}"
prices = {{ input = 10.0, output = 10.0 }}

[policy]
park_hours = 1000000
rules = [{{ tool = "write", decide = "ask" }}]
"""
LEFT_OUT = ("checkpoints", "logs", "token", "gateway.json", "gateway.lock", "looks", "*.db-shm", "*.db-wal", "home.log")
SKILL = "---\nname: greet\ndescription: How to greet\n---\nSay good morning.\n"


def calls(tool: str, **args: object) -> AssistantMessage:
    """An answer that asks for a tool."""
    return AssistantMessage([ToolCall("", tool, args)], usage=USAGE, stop_reason="tool_calls")


async def play(home: Path, model: Model, environ: dict[str, str]) -> None:
    """Everything that is to be found again: facts, a job, answers, a question, an open turn, a message behind it."""
    command = [sys.executable, "-m", "denizen"]
    skill = home / "workspace" / "skills" / "greet" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(SKILL)
    (home / "workspace" / "USER.md").write_text("Ann has a cat.\n")
    project = home.parent / "project"
    project.mkdir()
    (project / "README.md").write_text("A shop.\n")
    model.plays("It is a shop.")
    ask = [*command, "ask", "--session", "shop", "--workspace", str(project), "What is this?"]
    await asyncio.to_thread(subprocess.run, [*command, "trust", project], env=environ, check=True)
    await asyncio.to_thread(subprocess.run, ask, cwd=project, env=environ, check=True)
    gateway = GatewayProgram(home, environ)
    await gateway.start()
    model.plays(calls("remember", text="The cat is called Miau"), "I remember it.")
    await gateway.post("ann", "The cat is called Miau", id="ann-1")
    await gateway.replies("ann", 1)
    model.plays(calls("cron", action="add", text="Feed the cat", kind="at", when="2099-01-01 08:00"), "Scheduled.")
    await gateway.post("ann", "Remind me to feed her", id="ann-2")
    await gateway.replies("ann", 2)
    model.plays(calls("write", path="note.txt", content="Miau"))
    await gateway.post("cleo", "Write a note", id="cleo-1")
    await gateway.replies("cleo", 1)
    before = len(model.requests)
    model.server.send(Step.STALL)
    await gateway.post("ben", "Who is the cat?", id="ben-1")
    while len(model.requests) == before:  # noqa: ASYNC110 (the server tells nobody)
        await asyncio.sleep(0.05)
    await gateway.post("ben", "And who are you?", id="ben-2")
    await gateway.end(signal.SIGKILL)


def keep_home(home: Path, to: Path) -> None:
    """Copy what a later version may find, without what belongs to this machine."""
    for path in home.glob("*.db"):
        with closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(home, to, ignore=shutil.ignore_patterns(*LEFT_OUT))


def keep_database(url: str, to: Path) -> None:
    """Dump it as statements that any client can run."""
    dump = ["pg_dump", "--inserts", "--no-owner", "--no-privileges", url]
    ran = subprocess.run(dump, check=True, capture_output=True, text=True)
    text = ran.stdout.replace(f" on {socket.gethostname()} ", " on another.machine ")
    lines = [line for line in text.splitlines() if line and not line.startswith(("--", "\\"))]
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text("\n".join(lines) + "\n")


def begin(server: LoopbackOpenAI) -> tuple[Path, dict[str, str]]:
    """An empty home, and the environment of its programs."""
    shutil.rmtree(PLACE, ignore_errors=True)
    home = PLACE / "home"
    home.mkdir(parents=True, mode=0o700)
    (home / "denizen.toml").write_text(SETTINGS.format(url=server.base_url))
    user = PLACE / "user"
    user.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return home, kept | {"DENIZEN_HOME": str(home), "HOME": str(user), "TZ": "UTC"}


def main() -> None:
    """Keep both."""
    name = version("denizen")
    with LoopbackOpenAI() as server:
        home, environ = begin(server)
        asyncio.run(play(home, Model(server), environ))
        (home / "denizen.toml").write_text(SETTINGS.format(url=MODEL_URL))
        keep_home(home, DATA / "homes" / name)
    programs = binaries()
    if programs is None:
        sys.exit("There is no PostgreSQL server here: the database of this version is not kept.")
    postgres = OwnServer.create(programs)
    try:
        url = new_database(postgres.url)
        with LoopbackOpenAI() as server:
            home, environ = begin(server)
            share(home, url)
            asyncio.run(play(home, Model(server), environ))
        keep_database(url, DATA / "databases" / f"{name}.sql")
    finally:
        postgres.remove()
        shutil.rmtree(PLACE)


if __name__ == "__main__":
    main()
