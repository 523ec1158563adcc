"""`denizen gateway`: the agent that is always there."""

import asyncio
import dataclasses
import logging
import signal
import sys
from pathlib import Path

import click

from denizen.cli.gateway.client import Client
from denizen.cli.gateway.logs import log_to
from denizen.cli.gateway.service import describe, install
from denizen.cli.home import home
from denizen.cli.options import MODEL, WORKPLACE, CommandOptions, command_options
from denizen.cli.output import write
from denizen.clock import SystemClock
from denizen.config.home import places
from denizen.config.redact import Redactor
from denizen.config.zone import user_zone
from denizen.errors import DenizenError
from denizen.worlds.chat import profile_with
from denizen.worlds.chat.cron import Cron, cron_tool
from denizen.worlds.chat.database import Database
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.message import message_tool
from denizen.worlds.chat.outbox import Outbox
from denizen.worlds.chat.server import find_running, listening
from denizen.worlds.chat.settings import GatewaySettings
from denizen.worlds.chat.spawn import spawn_tool
from denizen.worlds.chat.status import status_of
from denizen.worlds.chat.token import new_token

_log = logging.getLogger(__name__)


@click.command()
@click.argument("action", type=click.Choice(["install"]), required=False)
@click.option("--print", "prints", is_flag=True, help="With install: print the service's file, and write nothing.")
@click.option("--host", default="", metavar="ADDRESS", help="Listen there (gateway.host).")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="The port; 0: a free one (gateway.port).")
@click.option("--rotate-token", is_flag=True, help="Make a new token, also for the gateway that runs, and exit.")
@command_options((MODEL, WORKPLACE), profile="gateway")
def gateway(
    action: str | None, host: str, port: int | None, *, prints: bool, rotate_token: bool, options: CommandOptions
) -> int:
    """Serve the agent to chats and programs, in the foreground, until it is stopped.

    What comes in is kept before it is acknowledged: after a crash, the next start goes on with it. SIGTERM and Ctrl-C
    let running turns end within gateway.grace seconds; a second one stops at once. What is left goes on at the next
    start. SIGHUP reads the configuration again. `install` writes a service of yours that runs it (systemd, or launchd
    on macOS).
    """
    if action:
        return _install(prints=prints)
    if rotate_token:
        return asyncio.run(_rotate(home()))
    while again := asyncio.run(_serve(host, port, options)):
        port = again
    return 0


def _install(*, prints: bool) -> int:
    service = describe(sys.platform, Path.home(), home())
    if prints:
        write(service.text)
        return 0
    install(service)
    write(f"{service.path} is written. Start it: {service.start}\n")
    return 0


async def _rotate(folder: Path) -> int:
    if find_running(folder):
        await Client(folder).post("/api/token", {})
    else:
        new_token(folder)
    write(f"The new token is in {folder / 'token'}; the old one is void, and what was open under it is closed.\n")
    return 0


async def _serve(host: str, port: int | None, options: CommandOptions) -> int:
    """Serve until it is stopped (0), or is to begin again with what the configuration says now (the port it had)."""
    own = options.load().config.agent.workspace_dir  # wherever it is started
    loaded = (options if options.workspace else dataclasses.replace(options, workspace=own)).load()
    folder, _ = places(loaded.config)
    log_to(folder, Redactor.from_environ(loaded.environ, loaded.secrets))
    for notice in loaded.notices:
        _log.warning("%s", notice)
    clock = SystemClock()
    database = Database(folder / "gateway.db", clock)
    outbox = Outbox(database, {}, clock=clock)
    settings, zone = loaded.config.section("gateway", GatewaySettings), user_zone(loaded.config)
    cron = Cron(database, clock=clock, zone=zone, settings=settings.cron)
    try:
        lent = (message_tool(outbox), cron_tool(cron), spawn_tool(database))
        async with options.agent(loaded, profile=profile_with(*lent)) as agent:
            return await _listen(Gateway(agent, outbox, cron), folder, host, port, options)
    finally:
        database.close()


async def _listen(serving: Gateway, folder: Path, host: str, port: int | None, options: CommandOptions) -> int:
    settings = serving.settings
    port = settings.port if port is None else port
    stop, again, loop = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop()

    def reload() -> None:
        try:
            options.load()
        except DenizenError as error:
            _log.error("SIGHUP: the configuration has mistakes; the gateway goes on as it was. %s", error)
            return
        _log.info("SIGHUP: beginning again with the new configuration")
        again.set()
        stop.set()

    async with listening(serving, folder, host=host or settings.host, port=port) as running:

        def end() -> None:
            again.clear()
            if stop.is_set():
                work.cancel()
            else:
                _log.info("Stopping. Running turns have %g s to end; a second signal stops at once.", settings.grace)
                stop.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end)
        loop.add_signal_handler(signal.SIGHUP, reload)
        write(f"listening on {running.url}\n")
        async with asyncio.TaskGroup() as tasks:
            work = tasks.create_task(serving.run(stop))
            tasks.create_task(_log_status(serving))
    return running.port if again.is_set() else 0


async def _log_status(serving: Gateway) -> None:
    _log.info("started; %s", "; ".join((await status_of(serving)).lines()))
