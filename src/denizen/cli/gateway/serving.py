"""What `denizen gateway` and `denizen worker` have in common: their parts, and how signals end them."""

import asyncio
import dataclasses
import gc
import logging
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

from denizen.cli.gateway.logs import log_to
from denizen.cli.options import CommandOptions
from denizen.cli.output import write
from denizen.config.home import places, user_folder
from denizen.config.load import Loaded
from denizen.config.redact import Redactor
from denizen.config.zone import user_zone
from denizen.errors import ConfigError, DenizenError
from denizen.runtime.clock import SystemClock
from denizen.worlds.chat import profile_with
from denizen.worlds.chat.backends import open_backends
from denizen.worlds.chat.delivery.channel_kinds import open_channels
from denizen.worlds.chat.delivery.message import message_tool
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.ledger.database import LedgerTaken, WorkerTiming
from denizen.worlds.chat.settings import GatewaySettings
from denizen.worlds.chat.timers.cron import Cron, cron_tool
from denizen.worlds.chat.turns.people import People
from denizen.worlds.chat.turns.spawn import spawn_tool

_THRESHOLD = (20_000, 10, 10)
"""After so many new objects garbage is looked for, among new, younger and all ones; a turn leaves about a hundred."""
_ACCOUNT_LOCKS = Path(".cache/denizen/accounts")
"""Locks on accounts, relative to the user's home directory, so that all of the user's gateways share them."""
_log = logging.getLogger(__name__)

Run = Callable[[asyncio.Event], Coroutine[Any, Any, None]]


@asynccontextmanager
async def opened(
    role: Literal["gateway", "worker"], options: CommandOptions, timing: WorkerTiming, *, new_ledger: bool = False
) -> AsyncGenerator[Gateway]:
    """A gateway with its agent, database and log, closed with the block. Raises ConfigError."""
    _ignore_reload_and_exit_at_once()  # until it is ready: it reads the configuration just now
    loaded = _load(options)
    settings = loaded.config.section("gateway", GatewaySettings)
    if role == "worker" and not settings.database:
        raise ConfigError(
            "A worker shares a PostgreSQL database with the gateway, and none is set. Set it for both, "
            '`[gateway] database = "postgresql://…"`; docs/several-machines.md says how.'
        )
    folder, _ = places(loaded.config)
    redactor = Redactor.from_environ(loaded.environ, loaded.secrets)
    log_to(folder, role, redactor)
    for notice in loaded.notices:
        _log.warning("%s", notice)
    clock, zone = SystemClock(), user_zone(loaded.config)
    is_gateway = role == "gateway"
    async with open_backends(
        loaded.config, clock, redactor, is_gateway=is_gateway, timing=timing, new_ledger=new_ledger
    ) as shared:
        locks = user_folder(loaded.environ) / _ACCOUNT_LOCKS if is_gateway else None
        with open_channels(loaded.config, folder, locks, clock) as channels:
            outbox = Outbox(shared.ledger, channels, clock=clock, keep_days=settings.keep_days)
            cron = Cron(shared.ledger, clock=clock, zone=zone, settings=settings.cron)
            lent = (message_tool(outbox), cron_tool(cron), spawn_tool(shared.ledger))
            async with options.agent(
                loaded, profile=profile_with(*lent), store=shared.sessions, memory=shared.memory, budget=shared.budget
            ) as agent:
                with _collecting_seldom():
                    yield Gateway(agent, outbox, cron, shared.side, sums=shared.sums, search=shared.search)


@contextmanager
def _collecting_seldom() -> Generator[None]:
    """Look for garbage seldom, and not in what there is by now: all turns stand still meanwhile, for up to 0.3 s."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        gc.unfreeze()


async def run_until_stopped(
    run: Run, ready: str, options: CommandOptions, grace: float, *more: Callable[[], Coroutine[Any, Any, None]]
) -> bool:
    """Run, print that it is ready, and stop at a signal: whether it is to begin again, with a new configuration.

    Raises LedgerTaken if another gateway has taken over.
    """
    stop, again, loop = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop()

    def reload() -> None:
        if stop.is_set():  # it reads the configuration anyway, or was told to end
            return
        try:
            loaded = _load(options)
            options.agent(loaded)  # what the configuration names must be there, too
            People(loaded.config)
        except DenizenError as error:
            _log.error("SIGHUP: the configuration has mistakes, and the old one stays. %s", error)
            return
        _log.info("SIGHUP: beginning again with the new configuration")
        again.set()
        stop.set()

    def end() -> None:
        again.clear()
        if stop.is_set():
            work.cancel()
        else:
            _log.info("Stopping. Running turns have %g s to end; a second signal stops at once.", grace)
            stop.set()

    try:
        async with asyncio.TaskGroup() as tasks:
            work = tasks.create_task(run(stop))
            for each in more:
                tasks.create_task(each())
            # Not the loop's own handlers: it takes those back as it closes, and a signal then would kill.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: loop.call_soon_threadsafe(end))
            signal.signal(signal.SIGHUP, lambda *_: loop.call_soon_threadsafe(reload))
            write(f"{ready}\n")
    except ExceptionGroup as failures:
        error: Exception | None = failures.subgroup(LedgerTaken)
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        raise error or failures from None
    finally:
        _ignore_reload_and_exit_at_once()
    return again.is_set()


def _ignore_reload_and_exit_at_once() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))


def _load(options: CommandOptions) -> Loaded:
    """The configuration for its own workspace, wherever it is started."""
    own = options.load().config.agent.workspace_dir
    return (options if options.workspace else dataclasses.replace(options, workspace=own)).load()
