"""`denizen moo run`: an agent plays until it is stopped."""

import asyncio
import dataclasses
import importlib
import signal
import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from pathlib import Path

import click
import msgspec

from denizen.cli.output import write
from denizen.cli.text import one_line
from denizen.clock import Clock, SystemClock
from denizen.tui import require_textual
from denizen.worlds.assemble import Agent
from denizen.worlds.moo.brain import Brain
from denizen.worlds.moo.folder import AgentFolder, open_folder
from denizen.worlds.moo.listener import Facts, Kind, Listener, Status
from denizen.worlds.moo.live import live
from denizen.worlds.moo.prompt import CharacterPrompt
from denizen.worlds.moo.tools import builder_tools

_COLOURS: dict[Kind, str] = {
    "server_error": "red",
    "thought": "bright_black",
    "goal": "yellow",
    "action": "green",
    "system": "cyan",
    "operator": "magenta",
    "patch": "blue",
}
_OFFLINE = (
    "The model is `offline`: rules, no language model. The agent watches and follows the token chain, "
    'and thinks of nothing. To let it think, set a model: `model = "provider:model"` in {}.'
)


class PlainLines:
    """Prints what happens, a line each."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def status(self, status: Status) -> None:
        """Not shown: lines stay."""

    def facts(self, facts: Facts) -> None:
        """Not shown, either."""

    def line(self, kind: Kind, text: str) -> None:
        """Print it with its time and kind."""
        at = self._clock.now().astimezone()
        write(click.style(f"[{at:%H:%M:%S}] [{kind}] {one_line(text)}", fg=_COLOURS.get(kind)) + "\n")


@click.command(short_help="Let an agent play until it is stopped.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option("--delay", default=0.0, type=click.FloatRange(0), metavar="SECONDS", help="Wait before signing in.")
@click.option("--model", default="", metavar="PROVIDER:MODEL", help="Which model, in place of the directory's.")
@click.option("--plain", is_flag=True, help="Print lines, also where there is a terminal for the whole screen.")
@click.option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="As in `denizen ask`.")
def run(folder: Path, *, delay: float, model: str, plain: bool, config: Path | None) -> int:
    """Sign in to a text world as the agent of DIR, and let it play until it is stopped.

    Ctrl-C and SIGTERM let it leave with @quit; a second one ends it at once. A connection that is lost is made again,
    five times at most. On a terminal it has the whole screen, and takes instructions there; elsewhere it prints lines.
    """
    opened = open_folder(folder, config=config, overrides={"model": model} if model else None)
    on_terminal = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    if on_terminal and not plain:
        require_textual()
    asyncio.run(_run(opened, delay, plain=plain or not on_terminal))
    return 0


async def _run(folder: AgentFolder, delay: float, *, plain: bool) -> None:
    clock = SystemClock()
    for notice in folder.notices:
        click.secho(one_line(notice), fg="yellow", err=True)
    if missing := _trace(folder.loaded.environ):
        click.secho(missing, fg="yellow", err=True)
    stop = asyncio.Event()
    _stop_at_signals(stop)
    listener: Listener = PlainLines(clock)
    screen: AbstractAsyncContextManager[None] = nullcontext()
    if not plain:
        from denizen.tui.agent_view import AgentView
        from denizen.tui.agents_app import AgentsApp

        listener = AgentView(folder.settings.user, lambda text: brain.instruct(text), clock)  # noqa: PLW0108 - made below
        screen = AgentsApp([listener]).shown(stop.set)
    config = msgspec.structs.replace(folder.loaded.config, mcp={})
    async with Agent(config, environ=folder.loaded.environ, profile="denizen") as agent:
        if agent.model.name == "offline":
            listener.line("system", _OFFLINE.format(folder.path / "denizen.toml"))
        await clock.sleep(delay)
        session = await agent.open(folder.session_key)
        names = folder.settings.tools
        try:
            prompt = CharacterPrompt(folder.path, folder.settings.use_baseline)
            record = dataclasses.replace(agent.record, prompt=prompt)
            brain = Brain(record, session, folder.settings, partial(builder_tools, names=names), listener)
            async with screen:
                await live(brain, folder, listener, clock, stop)
        finally:
            await agent.leave(session)


def _stop_at_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()

    def heard(number: int) -> None:
        stop.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, heard, number)


def _trace(environ: Mapping[str, str]) -> str:
    """Let Logfire record where LOGFIRE_TOKEN asks for that; what is missing for it."""
    if not environ.get("LOGFIRE_TOKEN"):
        return ""
    try:
        logfire = importlib.import_module("logfire")
    except ImportError:
        return "LOGFIRE_TOKEN is set, but logfire isn't installed: pip install logfire"
    logfire.configure(send_to_logfire="if-token-present", console=False, service_name="denizen-moo")
    return ""
