"""`denizen worker`: more hands for the gateway."""

import asyncio

import click

from denizen.cli.gateway.serving import opened, run_until_stopped
from denizen.cli.options import MODEL, WORKPLACE, CommandOptions, command_options
from denizen.worlds.chat.ledger.database import DEFAULT_TIMING, WorkerTiming


@click.command()
@command_options((MODEL, WORKPLACE), profile="gateway")
def worker(options: CommandOptions) -> int:
    """Run turns of the gateway that shares gateway.database, in the foreground, until it is stopped.

    Any number may run, on any number of machines; if one dies, the others continue its turns. SIGTERM and Ctrl-C give
    running turns gateway.grace seconds to end; a second one stops at once. SIGHUP reloads the configuration.
    """
    while asyncio.run(work(options)):
        pass
    return 0


async def work(options: CommandOptions, timing: WorkerTiming = DEFAULT_TIMING) -> bool:
    """Work until it is stopped: whether it is to begin again."""
    async with opened("worker", options, timing) as working:
        return await run_until_stopped(working.work, "working", options, working.settings.grace)
