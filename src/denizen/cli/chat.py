"""`denizen chat`: one message after the other."""

import asyncio
import dataclasses
import os
import stat
import sys
import termios
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from denizen import __version__
from denizen.cli.conversation import TerminalChat
from denizen.cli.host import terminal_modes
from denizen.cli.options import CommandOptions, command_options
from denizen.cli.output import say, say_error
from denizen.cli.slash import argument_words, is_command, respond
from denizen.cli.text import printable
from denizen.cli.turns import STATUS, decide_folder, run
from denizen.config.home import ensure_home
from denizen.entries import UserEntry
from denizen.errors import DenizenError
from denizen.events import Notice, TurnStop
from denizen.runtime.clock import SystemClock
from denizen.sessions import short_name
from denizen.worlds.commands import usages

if TYPE_CHECKING:
    from denizen.cli.editor import Editor
    from denizen.cli.live import LivePrompt

Work = Coroutine[Any, Any, TurnStop | None]
"""It gives how the turn ended; None where there was none."""

_NO_FULL_SCREEN = "The chat no longer has a full screen; --tui has no effect, and will be removed in 0.4."

CONTINUING_STOPS = {"answered", "iteration_limit", None}
"""How a turn ends, or a command that ran none, where the chat goes on with what was entered meanwhile."""


@click.command()
@click.option(
    "--gateway",
    "chat_name",
    is_flag=False,
    flag_value="home",
    metavar="[CHAT]",
    help="Talk in a chat of the running gateway (home).",
)
@click.option("--tui", is_flag=True, hidden=True)
@command_options()
def chat(chat_name: str | None, *, tui: bool, options: CommandOptions) -> int:
    """Talk with the agent, message after message.

    /help lists the commands. Messages that you enter while the agent works are passed on to it. Ctrl-C stops the agent,
    not the program, and puts those that it hasn't received back at the prompt. From a pipe every line is a message (a
    backslash at its end joins the next one), and the exit status is the last turn's.
    """
    if chat_name:
        from denizen.cli.gateway.talk import talk

        return talk(chat_name)
    loaded = decide_folder(options)
    if tui:
        loaded = dataclasses.replace(loaded, notices=(*loaded.notices, _NO_FULL_SCREEN))
    at_terminal = sys.stdin.isatty()
    with asyncio.Runner() as runner:
        resumes = bool(options.session or options.continue_)
        conversation = TerminalChat(run(runner, options.with_session(loaded, begun=False)), loaded, typed=at_terminal)
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


def _talk(runner: asyncio.Runner, conversation: TerminalChat) -> None:
    """With a person, who can type while the agent works where the terminal can show that."""
    from denizen.cli.completion import PromptCompleter
    from denizen.cli.editor import Editor

    ensure_home(conversation.agent.home)
    completer = PromptCompleter(usages("terminal"), argument_words(conversation), Path.cwd())
    editor = Editor(conversation.agent.home / "history", completer, SystemClock())
    options = conversation.options
    piped = stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    # Where output can reach the screen past the prompt, as through a pipe, no prompt stays there.
    if not (options.json or piped or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb"):
        from denizen.cli.live import LivePrompt

        conversation.live = LivePrompt(editor, SystemClock(), quiet=options.quiet)
        with editor.holding():
            run(runner, _talk_at(conversation, conversation.live))
    else:
        with terminal_modes(sys.stdin, of=termios.NOFLSH):  # Ctrl-C throws nothing away that was typed
            _converse(runner, conversation, lambda: run(runner, _read(conversation, editor)))


async def _read(conversation: TerminalChat, editor: "Editor") -> str | None:
    """The next message; it begins with what was said in vain."""
    if conversation.lines:
        editor.draft = "\n".join(conversation.lines.unsent)
        conversation.lines.unsent.clear()
    return await editor.read()


async def _talk_at(conversation: TerminalChat, live: "LivePrompt") -> None:
    if conversation.entries:
        await _run_live(conversation, live, conversation.reopen())
    while not conversation.over:
        text = conversation.commands.pop(0) if conversation.commands else await live.read()
        if text is None:
            break
        if text.strip():
            await _run_live(conversation, live, respond(conversation, text), text)


async def _run_live(conversation: TerminalChat, live: "LivePrompt", work: Work, text: str = "") -> None:
    """Do that at the prompt. Without a good end, what was said in vain is the person's again, also the `text`."""
    before = len(conversation.entries)
    if await live.run(_done(work), "cancelled") not in CONTINUING_STOPS:
        live.restore_unsent(_unsent_text(conversation, before, text))


def _unsent_text(conversation: TerminalChat, before: int, text: str) -> list[str]:
    """The text that was to begin a turn, where no new entry holds it."""
    said = any(isinstance(entry, UserEntry) for entry in conversation.entries[before:])
    return [] if said or is_command(text) else [text]


def _converse(runner: asyncio.Runner, conversation: TerminalChat, read: Callable[[], str | None]) -> int:
    end = _run_plain(runner, conversation, conversation.reopen())
    commands = conversation.commands
    while not conversation.over and (text := commands.pop(0) if commands else read()) is not None:
        if text.strip():
            end = _run_plain(runner, conversation, respond(conversation, text), text) or end
    return STATUS[end or "answered"]


def _run_plain(runner: asyncio.Runner, conversation: TerminalChat, work: Work, text: str = "") -> TurnStop | None:
    """How it ended, also where it was cancelled: the conversation goes on."""
    before = len(conversation.entries)
    try:
        end = run(runner, _done(work))
    except KeyboardInterrupt:
        end = "cancelled"
    if lines := conversation.lines:
        lines.restore_unsent(
            [] if end in CONTINUING_STOPS else [*_unsent_text(conversation, before, text), *lines.take_typed()]
        )
    return end


async def _done(work: Work) -> TurnStop | None:
    """How it ended, also where it failed."""
    try:
        return await work
    except DenizenError as error:
        say_error(error)
        return "error"


def _piped() -> str | None:
    lines: list[str] = []
    while line := sys.stdin.readline():
        lines.append(line.removesuffix("\n"))
        if not lines[-1].endswith("\\"):
            break
        lines[-1] = lines[-1][:-1]
    return "\n".join(lines) if lines else None


def _greet(conversation: TerminalChat, notices: tuple[str, ...]) -> None:
    options, agent = conversation.options, conversation.agent
    if not (options.quiet or options.json):
        about = (
            f"denizen {__version__}",
            agent.model.name,
            str(agent.workspace),
            f"session {short_name(conversation.name)}",
        )
        say(f"  {printable(' · '.join(about))} · /help", dim=True)
    with options.host() as host:
        for text in notices:
            host.emit(Notice(text, "warning"))
