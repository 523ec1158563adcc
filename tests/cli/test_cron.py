"""`denizen cron`, with and without a running gateway; a wake script during which the gateway is killed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run
from tests.cli.gateway import PATIENCE, GatewayProgram, share
from tests.cli.model import Model

from denizen.testing import FakeClock
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.ledger.sqlite_file import SqliteFile
from denizen.worlds.chat.settings import CronSettings
from denizen.worlds.chat.timers.cron import Cron, JobRequest, NewJob


def goes_on(denizen: Run) -> None:
    """Add, list, disable, enable and remove a job."""
    assert denizen("cron", "list").err == "No jobs are scheduled.\n"
    ran = denizen("cron", "add", "every", "2h", "Read the mail.", "--to", "http:ann", "--wake", "./new-mail")
    assert (ran.status, "Next run: 20" in ran.out) == (0, True), ran.err
    job = ran.out.split()[2].rstrip(".")
    [_, line] = denizen("cron", "list").out.splitlines()
    assert all(each in line for each in (job, "every 2h", "http:ann", "./new-mail", "Read the mail."))
    assert denizen("cron", "disable", job).out == f"Job {job}: disabled.\n"
    assert "disabled" in denizen("cron", "list").out
    assert denizen("cron", "enable", job).out == f"Job {job}: enabled.\n"
    assert denizen("cron", "remove", job).out == f"Job {job}: removed.\n"
    for action in ("remove", "enable"):
        ran = denizen("cron", action, job)
        assert (ran.status, f"There is no job '{job}'." in ran.err) == (1, True)
    ran = denizen("cron", "add", "every", "2 parsecs", "Fly.", "--to", "http:ann")
    assert (ran.status, "not an interval of 10 s or more" in ran.err) == (1, True)
    assert denizen("cron", "add", "every", "2h", " ", "--to", "http:ann").status == 1


async def test_jobs_are_managed_while_the_gateway_runs(gateway: GatewayProgram, denizen: Run) -> None:
    await gateway.start()
    await asyncio.to_thread(goes_on, denizen)


def test_jobs_are_managed_without_a_gateway(denizen: Run) -> None:
    goes_on(denizen)


def test_jobs_are_managed_in_a_database(home: Path, denizen: Run, postgres_url: str) -> None:
    share(home, postgres_url)
    goes_on(denizen)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "Replies need a chat: add --to CHANNEL:CHAT, or set gateway.owner"),
        (["--to", "pigeon:ann"], "No channel 'pigeon' is configured."),
    ],
)
def test_job_needs_a_chat_for_its_replies(denizen: Run, arguments: list[str], why: str) -> None:
    ran = denizen("cron", "add", "every", "2h", "Read the mail.", *arguments)
    assert (ran.status, why in ran.err) == (2, True)


def test_replies_go_to_the_owner_by_default(home: Path, denizen: Run) -> None:
    with (home / "denizen.toml").open("a") as file:
        file.write('[gateway]\nowner = ["http:boss", "http:ann"]\n')
    assert denizen("cron", "add", "cron", "0 9 * * mon", "Read the mail.").status == 0
    assert "http:boss" in denizen("cron", "list").out


async def missed_job(home: Path, wake: str) -> None:
    """Add a daily job whose first run was due years ago, so that a gateway begins it at its start."""
    clock = FakeClock()
    database = Database(SqliteFile(home / "gateway.db"), clock)
    cron = Cron(database, clock=clock, zone=None, settings=CronSettings())
    given: dict[str, Any] = {"kind": "every", "when": "1d", "text": "Read the mail.", "channel": "http", "chat": "ann"}
    await cron.carry_out(JobRequest("add", NewJob(**given, wake=wake)))
    database.close()


async def test_model_gets_the_output_of_the_script_that_wakes_it(
    home: Path, gateway: GatewayProgram, model: Model
) -> None:
    model.plays("Eve says hello.")
    await missed_job(home, "echo 'From: Eve. Hello!'")
    await gateway.start()
    [reply] = await gateway.replies("ann", 1)
    assert reply["content"] == "Eve says hello."
    [request] = model.requests
    asked = str(request["messages"])
    assert all(each in asked for each in ("Read the mail.", "From: Eve. Hello!", "output of the wake script"))


async def test_script_interrupted_by_a_kill_is_not_run_again_and_its_chat_is_informed(
    home: Path, gateway: GatewayProgram, model: Model
) -> None:
    await missed_job(home, "echo ran >>runs; sleep 600")
    await gateway.start()
    runs = home / "workspace/runs"
    async with asyncio.timeout(PATIENCE):
        while not (runs.exists() and runs.read_text()):  # noqa: ASYNC110 (another process writes it)
            await asyncio.sleep(0.02)
    gateway.kill()
    await gateway.process.wait()
    await gateway.start()
    [reply] = await gateway.replies("ann", 1)
    assert reply["content"].startswith("The wake script failed: ")
    assert "interrupted" in reply["content"]
    assert runs.read_text() == "ran\n"
    assert not model.server.requests
