"""Running turns for a command, and what their end means for its exit status."""

import asyncio
import dataclasses
import signal
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from denizen.cli.options import CommandOptions
from denizen.cli.output import confirm
from denizen.cli.text import printable
from denizen.config.home import places
from denizen.config.load import Loaded
from denizen.config.trust import awaiting_trust, trust
from denizen.engine import TurnOptions
from denizen.engine.next_request import last_prompt
from denizen.entries import AnyEntry, AssistantEntry, header_of
from denizen.events import Notice, TurnStop
from denizen.messages import UserMessage
from denizen.ports import Session, TurnIO
from denizen.worlds.assemble import Agent
from denizen.worlds.world import take_turn

STATUS = {"answered": 0, "iteration_limit": 3, "loop": 3, "budget": 3, "parked": 4, "cancelled": 130, "error": 1}
"""The exit status for each way a turn can end."""

_Result = TypeVar("_Result")


async def turn_of(
    agent: Agent, session: Session, message: UserMessage | None, host: TurnIO, options: TurnOptions
) -> TurnStop:
    """Run a turn, or go on with the unfinished one (`message` None); how it ended."""
    return (await take_turn(agent, session, message, host, options)).stop_reason


def decide_folder(options: CommandOptions) -> Loaded:
    """The configuration, once the person has said whether the workspace may bring its own settings and skills.

    Outside of git repositories they are asked whether the agent is to work here; else it works in a folder of its own.
    Where nobody can be asked, notices say what is left out, and where it works.
    """
    loaded = _decide_trust(options)
    _, folder = places(loaded.config)
    here = Path.cwd()
    if options.workspace or folder != loaded.config.agent.workspace_dir or here.is_relative_to(folder):
        return loaded
    about = f"{here} isn't in a git repository. Unless you say yes, the agent works in {folder}."
    if options.interactive and confirm("Work in this folder?", printable(about)):
        return _decide_trust(dataclasses.replace(options, workspace=here))
    elsewhere = f"This folder isn't a git repository: working in {folder}. To work here: --workspace ."
    return dataclasses.replace(loaded, notices=(*loaded.notices, elsewhere))


def _decide_trust(options: CommandOptions) -> Loaded:
    loaded = options.load()
    found = awaiting_trust(loaded.config)
    if not found or not options.interactive:
        return loaded
    home, folder = places(loaded.config)
    about = f"{folder} has files that can change what the agent may do, or run: {', '.join(found)}."
    trust(home, folder, trusted=confirm("Do you trust this folder?", printable(about)))
    return options.load()


@asynccontextmanager
async def opened(agent: Agent, name: str, host: TurnIO) -> AsyncGenerator[Session]:
    """The session of that name, for as long as it is needed. Raises SessionError."""
    session = await agent.open(name)
    try:
        for problem in agent.notices:
            host.emit(Notice(problem, "error"))  # also where --quiet hides warnings: the agent lacks tools
        for warning in session.warnings:
            host.emit(Notice(warning, "warning"))
        began = header_of(session.entries).workspace
        if began not in ("", str(agent.workspace)):
            host.emit(Notice(f"This session began in {began} and continues in {agent.workspace}.", "warning"))
        yield session
    finally:
        await agent.leave(session)


def run(runner: asyncio.Runner, work: Coroutine[Any, Any, _Result]) -> _Result:
    """Run to the end, or until it is cancelled: what is complete is then written, and processes are ended.

    Ctrl-C raises KeyboardInterrupt; SIGTERM, and a terminal that goes away, raise click.Abort.
    """
    loop = runner.get_loop()

    async def cancellable() -> _Result:
        task = asyncio.create_task(work)
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, task.cancel)
        try:
            return await task
        finally:
            for number in (signal.SIGTERM, signal.SIGHUP):
                loop.remove_signal_handler(number)

    try:
        return runner.run(cancellable())
    except asyncio.CancelledError:
        raise click.Abort from None


def options_as_begun(options: CommandOptions, entries: Sequence[AnyEntry]) -> CommandOptions:
    """The options; where they say nothing, the session's own folder, profile and last action format."""
    header, prompt = header_of(entries), last_prompt(entries)
    return dataclasses.replace(
        options,
        workspace=options.workspace or (Path(header.workspace) if header.workspace else None),
        profile=options.profile or header.profile or None,
        actions=options.actions or (prompt.actions if prompt else None),
    )


def last_model(entries: Sequence[AnyEntry]) -> str:
    """The model that answered last, as `provider:model`; empty where its name is no such thing."""
    names = (entry.message.model for entry in reversed(entries) if isinstance(entry, AssistantEntry))
    name = next(names, "")
    return name if ":" in name or name == "offline" else ""
