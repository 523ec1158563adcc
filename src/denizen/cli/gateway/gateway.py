"""`denizen gateway`: the agent that is always there."""

import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import click

from denizen.cli.gateway.client import Client
from denizen.cli.gateway.service import describe, install
from denizen.cli.gateway.serving import opened, run_until_stopped
from denizen.cli.home import home
from denizen.cli.options import MODEL, WORKPLACE, CommandOptions, command_options
from denizen.cli.output import write
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.http.server import find_running, listening
from denizen.worlds.chat.http.status import status_of
from denizen.worlds.chat.http.token import new_token
from denizen.worlds.chat.ledger.database import DEFAULT_TIMING, WorkerTiming

_log = logging.getLogger(__name__)


@click.command()
@click.argument("action", type=click.Choice(["install"]), required=False)
@click.option("--print", "prints", is_flag=True, help="With install: print the service file instead of writing it.")
@click.option("--host", default="", metavar="ADDRESS", help="The address to listen on (gateway.host).")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="The port; 0: a free one (gateway.port).")
@click.option("--rotate-token", is_flag=True, help="Replace the token, also of a running gateway, and exit.")
@click.option("--new-ledger", is_flag=True, help="Start with an empty ledger if gateway.db is missing.")
@command_options((MODEL, WORKPLACE), profile="gateway")
def gateway(
    action: str | None,
    host: str,
    port: int | None,
    *,
    prints: bool,
    rotate_token: bool,
    new_ledger: bool,
    options: CommandOptions,
) -> int:
    """Serve the agent to chats and programs, in the foreground, until it is stopped.

    Messages are saved before they are acknowledged, so the next start after a crash continues with them. SIGTERM and
    Ctrl-C give running turns gateway.grace seconds to end; a second one stops at once. Unfinished turns continue at the
    next start. SIGHUP reloads the configuration. `install` writes a user service that runs the gateway (systemd, or
    launchd on macOS).
    """
    if action:
        return _install(prints=prints)
    if prints:
        raise click.UsageError("--print goes with install: denizen gateway install --print")
    if rotate_token:
        return asyncio.run(_rotate(home()))
    return serve_until_stopped(host, port, options, new_ledger=new_ledger)


def serve_until_stopped(
    host: str,
    port: int | None,
    options: CommandOptions,
    *more: Callable[[], Coroutine[Any, Any, None]],
    new_ledger: bool = False,
) -> int:
    """Serve until stopped, across reloads of the configuration; `more` runs once, as soon as the gateway listens."""
    while again := asyncio.run(serve(host, port, options, *more, new_ledger=new_ledger)):
        port, more, new_ledger = again, (), False
    return 0


def _install(*, prints: bool) -> int:
    service = describe(sys.platform, Path.home(), home())
    if prints:
        write(service.text)
        return 0
    install(service)
    write(f"Wrote {service.path}. Start it: {service.start}\n")
    return 0


async def _rotate(folder: Path) -> int:
    if find_running(folder):
        await Client(folder).post("/api/token", {})
    else:
        new_token(folder)
    write(f"The new token is in {folder / 'token'}; the old one no longer works, and its connections are closed.\n")
    return 0


async def serve(
    host: str,
    port: int | None,
    options: CommandOptions,
    *more: Callable[[], Coroutine[Any, Any, None]],
    timing: WorkerTiming = DEFAULT_TIMING,
    new_ledger: bool = False,
) -> int:
    """Serve until it is stopped (0), or is to begin again with what the configuration says now (the port it had)."""
    async with opened("gateway", options, timing, new_ledger=new_ledger) as serving:
        settings = serving.settings
        (serving.home / "gateway.json").unlink(missing_ok=True)  # of one that was killed
        await serving.prepare()
        port = settings.port if port is None else port
        async with listening(serving, serving.home, host=host or settings.host, port=port) as running:
            ready = f"listening on {running.url}"
            again = await run_until_stopped(
                serving.run, ready, options, settings.grace, partial(_log_status, serving), *more
            )
        return running.port if again else 0


async def _log_status(serving: Gateway) -> None:
    _log.info("started; %s", "; ".join((await status_of(serving)).lines()))
