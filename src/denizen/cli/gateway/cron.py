"""`denizen cron`: list, add and change the gateway's scheduled jobs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

import click
import msgspec

from denizen.cli.gateway.client import Client, ask_gateway_or_ledger
from denizen.cli.output import print_table, say, write
from denizen.config.load import load
from denizen.config.settings import Config
from denizen.config.zone import user_zone
from denizen.errors import DenizenError
from denizen.runtime.clock import Clock
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.ledger.outbound import POLLED
from denizen.worlds.chat.settings import GatewaySettings, Missed
from denizen.worlds.chat.timers.cron import Cron, JobStatus, Kind, NewJob, no_job_error, shown

T = TypeVar("T")


@click.group()
def cron() -> None:
    """Schedule jobs: tasks that the agent does at a time, again and again, or when a script says so."""


@cron.command("list")
def list_jobs() -> None:
    """List the jobs, with the next run of each and what came of the last one."""

    async def by_gateway(client: Client) -> list[JobStatus]:
        return msgspec.convert((await client.get("/api/jobs"))["jobs"], list[JobStatus])

    found = _run(by_gateway, Cron.statuses)
    if not found:
        say("No jobs are scheduled.")
        return
    rows = [
        (
            each.job.id,
            f"{each.job.kind} {each.job.when} {each.job.zone}",
            _shown(each),
            f"{each.job.channel}:{each.job.chat}",
            each.job.wake,
            each.last,
            each.job.name,
        )
        for each in found
    ]
    print_table(("id", "when", "next", "to", "wake script", "last result", "name"), rows, elastic="last result")


@cron.command(short_help="Add a job.")
@click.option("--to", "chat", default="", metavar="CHANNEL:CHAT", help="Where replies go (default: gateway.owner).")
@click.option("--zone", default="", metavar="ZONE", help="A time zone (default: agent.timezone).")
@click.option("--name", default="", help="What the list and the agent call the job (default: its text).")
@click.option("--missed", type=click.Choice(["once", "skip"]), help="Whether missed runs are made up for, by one.")
@click.option(
    "--wake", default="", metavar="SCRIPT", help="Run this first; the agent works only if it prints something."
)
@click.argument("kind", type=click.Choice(["at", "every", "cron"]))
@click.argument("when")
@click.argument("text")
def add(kind: Kind, when: str, text: str, *, chat: str, zone: str, name: str, missed: Missed | None, wake: str) -> None:
    """Add a job that does TEXT: `at` an ISO time, `every` 30m, 2h or 1d, or by a `cron` expression of five fields.

    A wake script runs in the sandbox, in the agent's workspace, for two minutes at most. If it prints nothing and its
    exit status is 0, no model is called.
    """
    config = load().config
    channel, _, to = (chat or next(iter(config.section("gateway", GatewaySettings).owners), "")).partition(":")
    if not to:
        raise click.UsageError("Say where replies go: --to CHANNEL:CHAT, or gateway.owner in denizen.toml.")
    if channel not in {*config.channels, *POLLED}:
        raise click.UsageError(f"No channel {channel!r} is configured. `denizen channels` lists them.")
    new = NewJob(
        text=text, kind=kind, when=when, channel=channel, chat=to, zone=zone, name=name, missed=missed, wake=wake
    )

    async def by_gateway(client: Client) -> JobStatus:
        answer = await client.post("/api/jobs", {"type": "add", "job": msgspec.to_builtins(new)})
        return msgspec.convert(answer["added"], JobStatus)

    added = _run(by_gateway, lambda jobs: jobs.schedule(new))
    write(f"Added job {added.job.id}. Next run: {_shown(added)}\n")


@cron.command()
@click.argument("job")
def remove(job: str) -> None:
    """Remove a job."""
    _change(job, "remove")


@cron.command()
@click.argument("job")
def enable(job: str) -> None:
    """Enable a job that was disabled."""
    _change(job, "enable")


@cron.command()
@click.argument("job")
def disable(job: str) -> None:
    """Disable a job until it is enabled again."""
    _change(job, "disable")


def _change(job: str, action: Literal["remove", "enable", "disable"]) -> None:
    async def by_gateway(client: Client) -> bool:
        await client.post("/api/jobs", {"type": action, "id": job})
        return True

    if not _run(by_gateway, lambda jobs: jobs.change(job, action)):
        raise DenizenError(no_job_error(job))
    write(f"Job {job}: {action}d.\n")


def _run(by_gateway: Callable[[Client], Awaitable[T]], in_ledger: Callable[[Cron], Awaitable[T]]) -> T:
    def on_jobs(config: Config, database: Database, clock: Clock) -> Awaitable[T]:
        settings = config.section("gateway", GatewaySettings).cron
        return in_ledger(Cron(database, clock=clock, zone=user_zone(config), settings=settings))

    return asyncio.run(ask_gateway_or_ledger(by_gateway, on_jobs))


def _shown(status: JobStatus) -> str:
    return shown(status.due, user_zone(load().config)) if status.due else "disabled"
