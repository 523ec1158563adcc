"""`denizen chat`: one message after the other."""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import click

from denizen import __version__
from denizen.cli.conversation import Conversation
from denizen.cli.home import short_name
from denizen.cli.options import TurnOptions, turn_options
from denizen.cli.output import say_error
from denizen.cli.reopening import reopen
from denizen.cli.slash import COMMANDS, obey
from denizen.cli.text import printable
from denizen.cli.turns import STATUS, run, settled
from denizen.config.home import ensure_home
from denizen.errors import DenizenError
from denizen.events import Notice


@click.command()
@turn_options()
def chat(options: TurnOptions) -> int:
    """Talk with the agent, message after message.

    /help lists the commands. Ctrl-C stops the agent, not the program; what you type and enter while it works is said to
    it. From a pipe every line is a message (a backslash at its end joins the next one), and the exit status is the
    last turn's.
    """
    loaded = settled(options)
    at_terminal = sys.stdin.isatty()
    with asyncio.Runner() as runner:
        resumes = bool(options.session or options.continue_)
        conversation = Conversation(run(runner, options.at_session(loaded, begun=False)), loaded, typed=at_terminal)
        try:
            if resumes:
                run(runner, conversation.session())
            _greet(conversation, loaded.notices)
            status = _converse(runner, conversation, _editor(runner, conversation) if at_terminal else _piped)
            return 0 if at_terminal else status
        finally:
            runner.run(conversation.close())


def _converse(runner: asyncio.Runner, conversation: Conversation, read: Callable[[], str | None]) -> int:
    status = _tried(runner, reopen(conversation))
    commands = conversation.commands
    while not conversation.over and (text := commands.pop(0) if commands else read()) is not None:
        if text.strip():
            status = _tried(runner, _hear(conversation, text, status))
    return status


def _tried(runner: asyncio.Runner, work: Coroutine[Any, Any, int]) -> int:
    """The status of what was done, also where it was cancelled or failed: the conversation goes on."""
    try:
        return run(runner, work)
    except KeyboardInterrupt:
        return STATUS["cancelled"]
    except DenizenError as error:
        say_error(error)
        return STATUS["error"]


async def _hear(conversation: Conversation, text: str, status: int) -> int:
    return status if await obey(conversation, text) else await conversation.say(text)


def _editor(runner: asyncio.Runner, conversation: Conversation) -> Callable[[], str | None]:
    from denizen.cli.editor import Editor

    ensure_home(conversation.agent.home)
    editor = Editor(conversation.agent.home / "history", [f"/{name}" for name in COMMANDS])
    return lambda: run(runner, editor.read())


def _piped() -> str | None:
    lines: list[str] = []
    while line := sys.stdin.readline():
        lines.append(line.removesuffix("\n"))
        if not lines[-1].endswith("\\"):
            break
        lines[-1] = lines[-1][:-1]
    return "\n".join(lines) if lines else None


def _greet(conversation: Conversation, notices: tuple[str, ...]) -> None:
    options, agent = conversation.options, conversation.agent
    if not (options.quiet or options.json):
        about = (
            f"denizen {__version__}",
            agent.model.name,
            str(agent.workspace),
            f"session {short_name(conversation.name)}",
        )
        click.secho(f"  {printable(' · '.join(about))} · /help", dim=True, err=True)
    with options.host() as host:
        for text in notices:
            host.emit(Notice(text, "warning"))
