"""`denizen moo run`: an agent plays until it is stopped."""

import asyncio
import importlib
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path

import click

from denizen.cli.moo.own_process import JsonListener, taking_instructions
from denizen.cli.output import write
from denizen.cli.text import one_line
from denizen.errors import ConfigError
from denizen.ports import Tool
from denizen.runtime.clock import Clock, SystemClock
from denizen.tui import require_textual
from denizen.worlds.assemble import Agent
from denizen.worlds.moo.brain import Brain
from denizen.worlds.moo.character import Character
from denizen.worlds.moo.folder import AgentFolder, open_folder
from denizen.worlds.moo.group import open_group
from denizen.worlds.moo.listener import CharacterListener, Facts, Kind, Status
from denizen.worlds.moo.live import live, run_until_stopped
from denizen.worlds.moo.memory import load_skills, memory_and_skill_tools, open_character_memory
from denizen.worlds.moo.session_log import SessionLog
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
OFFLINE = (
    "The model is `offline`: rules, not a language model. The agent watches and follows the token chain, "
    'and never thinks. To let it think, set a model: `model = "provider:model"` in {}.'
)
"""A warning for agents without a language model."""


class PlainLines:
    """Prints what happens, a line each; with several agents, each under its name."""

    def __init__(self, clock: Clock, name: str = "") -> None:
        self._clock = clock
        self._name = f"{name} " if name else ""

    def status(self, status: Status) -> None:
        """Not shown: lines stay."""

    def facts(self, facts: Facts) -> None:
        """Not shown, either."""

    def line(self, kind: Kind, text: str) -> None:
        """Print it with its time and kind."""
        at = self._clock.now().astimezone()
        write(click.style(f"[{at:%H:%M:%S}] {self._name}[{kind}] {one_line(text)}", fg=_COLOURS.get(kind)) + "\n")


@click.command(short_help="Run an agent until it is stopped.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option("--delay", default=0.0, type=click.FloatRange(0), metavar="SECONDS", help="Wait before signing in.")
@click.option("--model", default="", metavar="PROVIDER:MODEL", help="The model to use instead of the directory's.")
@click.option("--plain", is_flag=True, help="Print lines, also on a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, and take instructions from standard input.")
@click.option("--group", type=click.Path(file_okay=False, path_type=Path), help="The group whose chain it belongs to.")
@click.option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="As in `denizen ask`.")
def run(
    folder: Path, *, delay: float, model: str, plain: bool, as_json: bool, group: Path | None, config: Path | None
) -> int:
    """Sign in to a text world as the agent of DIR, and let it play until it is stopped.

    Ctrl-C and SIGTERM let it leave with @quit; a second one ends it at once. A lost connection is retried, at most five
    times. On a terminal the agent has the whole screen, and takes instructions there; elsewhere it prints lines.
    """
    open_member = open_group(group).member if group else open_folder
    opened = open_member(folder, config=config, overrides={"model": model} if model else None)
    on_terminal = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    shown = on_terminal and not plain and not as_json
    if shown:
        require_textual()
    asyncio.run(_run(opened, delay, on_screen=shown, as_json=as_json))
    return 0


async def _run(folder: AgentFolder, delay: float, *, on_screen: bool, as_json: bool) -> None:
    clock = SystemClock()
    stop = asyncio.Event()
    stop_at_signals(stop)
    listener: CharacterListener = PlainLines(clock)
    screen: AbstractAsyncContextManager[None] = nullcontext()
    if as_json:
        listener = JsonListener()
        screen = taking_instructions(lambda text: brain.instruct(text), stop)  # noqa: PLW0108 - made below
    elif on_screen:
        from denizen.tui.agent_view import AgentView
        from denizen.tui.agents_app import AgentsApp

        listener = AgentView(folder.settings.user, lambda text: brain.instruct(text), clock)  # noqa: PLW0108 - made below
        screen = AgentsApp([listener]).shown(stop.set)
    for notice in (*folder.notices, *trace(folder.loaded.environ)):
        listener.line("system", one_line(notice))
    async with brain_of(folder, listener) as brain, screen:
        await run_until_stopped(stop, clock.sleep(delay))
        await live(brain, folder, clock, stop)


@asynccontextmanager
async def brain_of(folder: AgentFolder, listener: CharacterListener) -> AsyncGenerator[Brain]:
    """The brain of the agent in a directory, which has its session until the context ends.

    Raises ConfigError if it can't sign in for want of a password.
    """
    if folder.missing_password:
        raise ConfigError(f"{folder.path}: {folder.missing_password}")
    memory = open_character_memory(folder, SystemClock())
    skills, left_out = await asyncio.to_thread(load_skills, folder)
    for notice in left_out:
        listener.line("system", one_line(notice))
    async with Agent(folder.config, environ=folder.loaded.environ, profile="denizen", memory=memory) as agent:
        if agent.model.name == "offline":
            listener.line("system", OFFLINE.format(folder.path / "denizen.toml"))
        session = await agent.open(folder.session_key)
        try:
            character = Character(folder.path, folder.settings, skills)
            log_days = folder.config.retention.log_days
            log = SessionLog(listener, folder.path, agent.record.now, agent.record.redact, log_days)

            def tools(brain: Brain) -> list[Tool]:
                return [*builder_tools(brain, names=character.tools), *memory_and_skill_tools(memory, skills)]

            yield Brain(agent.record, session, character, tools, log)
        finally:
            await agent.leave(session)
            memory.close()


def stop_at_signals(stop: asyncio.Event) -> None:
    """Set the event at the first SIGTERM or Ctrl-C; a second one ends the process."""
    loop = asyncio.get_running_loop()

    def heard(number: int) -> None:
        stop.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, heard, number)


def trace(environ: Mapping[str, str]) -> Sequence[str]:
    """Let Logfire record where LOGFIRE_TOKEN asks for that; what is missing for it."""
    if not (token := environ.get("LOGFIRE_TOKEN")):
        return ()
    try:
        logfire = importlib.import_module("logfire")
    except ImportError:
        return ("LOGFIRE_TOKEN is set, but logfire isn't installed: pip install logfire",)
    os.environ.setdefault("OTEL_EXPORTER_OTLP_TIMEOUT", "3")  # seconds that it may hold us up at the end
    logfire.configure(token=token, console=False, metrics=False, service_name="denizen-moo")
    return ()
