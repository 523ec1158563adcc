"""`denizen cron`: list, add and change the gateway's scheduled jobs."""

import asyncio
from collections.abc import Awaitable
from typing import Any, Literal

import click
import msgspec

from denizen.cli.gateway.client import ask_gateway_or_ledger
from denizen.cli.output import print_table, say, write
from denizen.config.load import load
from denizen.config.settings import Config
from denizen.config.zone import user_zone
from denizen.runtime.clock import Clock
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.ledger.outbound import POLLED
from denizen.worlds.chat.settings import GatewaySettings
from denizen.worlds.chat.timers.cron import Cron, JobRequest, JobStatus, NewJob, shown


@click.group()
def cron() -> None:
    """Schedule jobs: tasks that the agent runs once, repeatedly, or when a script has output."""


@cron.command("list")
def list_jobs() -> None:
    """List the jobs, with each one's next run and the result of its last one."""
    found = _ask(JobRequest("list"))
    if not found:
        say("No jobs are scheduled.")
        return
    rows = [
        (job.id, f"{job.kind} {job.when}", _due(each), f"{job.channel}:{job.chat}", job.wake, each.last, job.name)
        for each in found
        for job in [each.job]
    ]
    print_table(("id", "when", "next", "to", "wake script", "last result", "name"), rows, elastic="last result")


@cron.command(short_help="Add a job.")
@click.option("--to", "chat", default="", metavar="CHANNEL:CHAT", help="Where replies go (default: gateway.owner).")
@click.option("--zone", default="", metavar="ZONE", help="A time zone (default: agent.timezone).")
@click.option("--name", default="", help="The job's name for you and the agent (default: its text).")
@click.option("--missed", type=click.Choice(["once", "skip"]), help="Whether to run once after missed runs.")
@click.option(
    "--wake", default="", metavar="SCRIPT", help="Run this first; the agent starts only if it prints something."
)
@click.argument("kind", type=click.Choice(["at", "every", "cron"]))
@click.argument("when")
@click.argument("text")
def add(chat: str, **given: Any) -> None:
    """Add a job with the task TEXT: `at` an ISO time, `every` 30m, 2h or 1d, or by a `cron` expression of five fields.

    A wake script runs in the sandbox, in the agent's workspace, for two minutes at most. If it prints nothing and its
    exit status is 0, no model is called.
    """
    config = load().config
    channel, _, to = (chat or next(iter(config.section("gateway", GatewaySettings).owners), "")).partition(":")
    if not to:
        raise click.UsageError("Replies need a chat: add --to CHANNEL:CHAT, or set gateway.owner in denizen.toml.")
    if channel not in {*config.channels, *POLLED}:
        raise click.UsageError(f"No channel {channel!r} is configured. `denizen channels` lists them.")
    [added] = _ask(JobRequest("add", NewJob(channel=channel, chat=to, **given)))
    write(f"Added job {added.job.id}. Next run: {_due(added)}\n")


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
    _ask(JobRequest(action, id=job))
    write(f"Job {job}: {action}d.\n")


def _ask(asked: JobRequest) -> list[JobStatus]:
    def in_ledger(config: Config, database: Database, clock: Clock) -> Awaitable[list[JobStatus]]:
        settings = config.section("gateway", GatewaySettings).cron
        return Cron(database, clock=clock, zone=user_zone(config), settings=settings).carry_out(asked)

    return asyncio.run(ask_gateway_or_ledger("/api/jobs", msgspec.to_builtins(asked), list[JobStatus], in_ledger))


def _due(status: JobStatus) -> str:
    return shown(status.due, user_zone(load().config)) if status.due else "disabled"
