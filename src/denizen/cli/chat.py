"""`denizen chat`: one message after the other."""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

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
from denizen.clock import SystemClock
from denizen.config.home import ensure_home
from denizen.entries import UserEntry
from denizen.errors import DenizenError
from denizen.events import Notice

if TYPE_CHECKING:
    from denizen.cli.editor import Editor
    from denizen.cli.live import Live

GOOD_ENDS = {STATUS["answered"], STATUS["iteration_limit"]}
"""The exit statuses behind which what was entered meanwhile is gone on with."""


@click.command()
@turn_options()
def chat(options: TurnOptions) -> int:
    """Talk with the agent, message after message.

    /help lists the commands. What you type and enter while the agent works is said to it. Ctrl-C stops the agent, not
    the program, and what it hadn't heard is there to be edited or sent. From a pipe every line is a message (a
    backslash at its end joins the next one), and the exit status is the last turn's.
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
            if at_terminal:
                _talk(runner, conversation)
                return 0
            return _converse(runner, conversation, _piped)
        finally:
            runner.run(conversation.close())


def _talk(runner: asyncio.Runner, conversation: Conversation) -> None:
    """With a person, who can type while the agent works where the terminal can show that."""
    from denizen.cli.editor import Editor

    ensure_home(conversation.agent.home)
    editor = Editor(conversation.agent.home / "history", [f"/{name}" for name in COMMANDS], SystemClock())
    if conversation.options.json or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        _converse(runner, conversation, lambda: run(runner, editor.read()))
    else:
        with editor.holding():
            run(runner, _talk_live(conversation, editor))


async def _talk_live(conversation: Conversation, editor: "Editor") -> None:
    from denizen.cli.live import Live

    live = conversation.live = Live(editor, SystemClock(), quiet=conversation.options.quiet)
    status = await _worked(conversation, live, reopen(conversation)) if conversation.entries else 0
    while not conversation.over:
        waiting = conversation.commands or live.queued
        text = waiting.pop(0) if waiting else await editor.read()
        if text is None:
            break
        if text.strip():
            status = await _worked(conversation, live, _hear(conversation, text, status))


async def _worked(conversation: Conversation, live: "Live", work: Coroutine[Any, Any, int]) -> int:
    """The status of what was done at the prompt. Without a good end, what was said in vain is the person's again."""
    before = len(conversation.entries)
    status = await live.run(_done(work))
    if status not in GOOD_ENDS:
        new = conversation.entries[before:]
        said = {entry.message.text for entry in new if isinstance(entry, UserEntry)}
        live.bring_back([text for text in live.heard if text not in said])
    return STATUS["cancelled"] if status is None else status


def _converse(runner: asyncio.Runner, conversation: Conversation, read: Callable[[], str | None]) -> int:
    status = _tried(runner, reopen(conversation))
    commands = conversation.commands
    while not conversation.over and (text := commands.pop(0) if commands else read()) is not None:
        if text.strip():
            status = _tried(runner, _hear(conversation, text, status))
    return status


def _tried(runner: asyncio.Runner, work: Coroutine[Any, Any, int]) -> int:
    """The status of what was done, also where it was cancelled: the conversation goes on."""
    try:
        return run(runner, _done(work))
    except KeyboardInterrupt:
        return STATUS["cancelled"]


async def _done(work: Coroutine[Any, Any, int]) -> int:
    """The status of what was done, also where it failed."""
    try:
        return await work
    except DenizenError as error:
        say_error(error)
        return STATUS["error"]


async def _hear(conversation: Conversation, text: str, status: int) -> int:
    return status if await obey(conversation, text) else await conversation.say(text)


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
