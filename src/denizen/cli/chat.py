"""`denizen chat`: one message after the other."""

import asyncio
import dataclasses
import os
import stat
import sys
import termios
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import click
import msgspec

from denizen import __version__
from denizen.cli.attachments import compose, unattached
from denizen.cli.host import JsonLines, terminal_lines, terminal_modes
from denizen.cli.options import CommandOptions, command_options
from denizen.cli.output import error_width, say, say_error
from denizen.cli.slash import COMMANDS, is_command, respond
from denizen.cli.terminal import Terminal
from denizen.cli.text import cut, one_line, printable
from denizen.cli.turns import STATUS, decide_folder, opened, run, turn_of
from denizen.clock import SystemClock
from denizen.config.home import ensure_home
from denizen.config.load import Loaded
from denizen.engine.resume import nothing_left, question_of, unfinished
from denizen.entries import AnyEntry, AssistantEntry, UserEntry
from denizen.errors import DenizenError
from denizen.events import Notice, TurnStop
from denizen.messages import Text, UserMessage
from denizen.ports import Session
from denizen.sessions import new_name, short_name

if TYPE_CHECKING:
    from denizen.cli.editor import Editor
    from denizen.cli.live import LivePrompt

Work = Coroutine[Any, Any, TurnStop | None]
"""It gives how the turn ended; None where there was none."""

GOOD_ENDS = {"answered", "iteration_limit", None}
"""How a turn ends, or a command that ran none, where the chat goes on with what was entered meanwhile."""

LONGEST = 240
"""Cells of what was said last, as it is shown."""


class Conversation:
    """An agent and one of its sessions, each of which can be changed for another.

    A session is made with its first message. `typed`: a person types, also while the agent works, which hears that with
    its next model call; slash commands are kept in `commands`. They type at the `live` prompt on terminals that can
    show it, or else in `lines`. `outputs` are those of tools that were shown in part.
    """

    def __init__(self, options: CommandOptions, loaded: Loaded, *, typed: bool) -> None:
        self.options = options
        self.agent = options.agent(loaded)
        self.name = options.session
        self.over = False
        self.outputs: list[str] = []
        self.live: LivePrompt | None = None
        self.lines = terminal_lines() if typed else None
        self.commands = self.lines.commands if self.lines else []
        self._loaded = loaded
        self._typed = typed
        self._session: Session | None = None
        self._open = AsyncExitStack()

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """The session's; none before it is open."""
        return self._session.entries if self._session else ()

    def host(self) -> Terminal | JsonLines:
        """The host of the next turn."""
        return self.options.host(self.commands if self._typed else None, self.live, self.lines, self.outputs)

    async def say(self, text: str) -> TurnStop:
        """One turn; how it ended."""
        return await self._turn(UserMessage(compose(text, self.agent.workspace)), unattached(text))

    async def go_on(self) -> TurnStop:
        """Go on with the unfinished turn; how it ended. Raises SessionError where there is none."""
        session = await self.session()
        if not unfinished(session.entries):
            raise nothing_left(session)
        return await self._turn(None)

    async def session(self) -> Session:
        """The session, open for writing. Raises SessionError when another process has it."""
        if self._session is None:
            with self.host() as host:
                self._session = await self._open.enter_async_context(opened(self.agent, self.name, host))
        return self._session

    async def change_session(self, name: str = "") -> None:
        """Go on with another session, the one of that name or a new one. Raises SessionError, and the old one stays."""
        await self._leave()
        before, self.name = self.name, name or new_name(self.agent.clock)
        try:
            if name:
                await self.session()
        except DenizenError:
            self.name = before
            raise

    async def change_model(self, name: str) -> None:
        """Go on with another model. Raises ConfigError, and the old one stays."""
        config = msgspec.structs.replace(self.agent.config, model=name)
        agent = self.options.agent(dataclasses.replace(self._loaded, config=config))
        await self.close()
        self.agent = agent

    async def close(self) -> None:
        """Give the session and the agent's connections back."""
        await self._leave()
        await self.agent.close()

    async def _turn(self, message: UserMessage | None, notices: Sequence[str] = ()) -> TurnStop:
        session = await self.session()
        with self.host() as host:
            for text in notices:
                host.emit(Notice(text, "warning"))
            turn = self.options.turn(self.agent)
            if (typing := self.live or self.lines) and not self.options.json:
                turn = dataclasses.replace(turn, queued=typing.waiting)
            return await turn_of(self.agent, session, message, host, turn)

    async def reopen(self) -> TurnStop | None:
        """Show what was said last; ask the question that the session waits for. How the turn ended, if one ran."""
        if not (self.options.quiet or self.options.json):
            for line in _last_said(self.entries):
                say(cut(f"  {line}", min(error_width() - 1, LONGEST)), dim=True)
        if question_of(self.entries):
            return await self.go_on()
        if unfinished(self.entries):
            with self.host() as host:
                host.emit(Notice("The last turn was left unfinished: /continue goes on with it.", "warning"))
        return None

    async def _leave(self) -> None:
        self._session = None
        await self._open.aclose()


def _last_said(entries: Sequence[AnyEntry]) -> Iterator[str]:
    """The user's last message and the words that answered it."""
    last = next((i for i in reversed(range(len(entries))) if isinstance(entries[i], UserEntry)), len(entries))
    answer = ""
    for entry in entries[last:]:
        match entry:
            case UserEntry(message=message):
                words = next((part.text for part in message.content if isinstance(part, Text)), "[image]")
                yield f"> {one_line(words)}"
            case AssistantEntry(message=message):
                answer = one_line(message.text) or answer
            case _:
                pass
    if answer:
        yield answer


@click.command()
@command_options()
def chat(options: CommandOptions) -> int:
    """Talk with the agent, message after message.

    /help lists the commands. What you enter while the agent works is passed on to it. Ctrl-C stops the agent, not the
    program, and brings back what it hadn't got, to be edited or sent. From a pipe every line is a message (a backslash
    at its end joins the next one), and the exit status is the last turn's.
    """
    loaded = decide_folder(options)
    at_terminal = sys.stdin.isatty()
    with asyncio.Runner() as runner:
        resumes = bool(options.session or options.continue_)
        conversation = Conversation(run(runner, options.with_session(loaded, begun=False)), loaded, typed=at_terminal)
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
    if _can_show_prompt(conversation.options):
        with editor.holding():
            run(runner, _talk_live(conversation, editor))
    else:
        with terminal_modes(sys.stdin, of=termios.NOFLSH):  # Ctrl-C throws nothing away that was typed
            _converse(runner, conversation, lambda: run(runner, _read(conversation, editor)))


def _can_show_prompt(options: CommandOptions) -> bool:
    """Whether nothing comes to the screen past the prompt, as what goes through a pipe does."""
    piped = stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
    return not (options.json or piped or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb")


async def _read(conversation: Conversation, editor: "Editor") -> str | None:
    """The next message; it begins with what was said in vain."""
    if conversation.lines:
        editor.draft = "\n".join(conversation.lines.unsaid)
        conversation.lines.unsaid.clear()
    return await editor.read()


async def _talk_live(conversation: Conversation, editor: "Editor") -> None:
    from denizen.cli.live import LivePrompt

    live = conversation.live = LivePrompt(editor, SystemClock(), quiet=conversation.options.quiet)
    if conversation.entries:
        await _worked(conversation, live, conversation.reopen())
    while not conversation.over:
        waiting = conversation.commands or live.queued
        text = waiting.pop(0) if waiting else await editor.read()
        if text is None:
            break
        if text.strip():
            await _worked(conversation, live, respond(conversation, text), text)


async def _worked(conversation: Conversation, live: "LivePrompt", work: Work, text: str = "") -> None:
    """Do that at the prompt. Without a good end, what was said in vain is the person's again, also the `text`."""
    before = len(conversation.entries)
    if await live.run(_done(work), "cancelled") not in GOOD_ENDS:
        live.bring_back(_unsaid(conversation, before, text))


def _unsaid(conversation: Conversation, before: int, text: str) -> list[str]:
    """The text that was to begin a turn, where no new entry holds it."""
    said = any(isinstance(entry, UserEntry) for entry in conversation.entries[before:])
    return [] if said or is_command(text) else [text]


def _converse(runner: asyncio.Runner, conversation: Conversation, read: Callable[[], str | None]) -> int:
    end = _tried(runner, conversation, conversation.reopen())
    commands = conversation.commands
    while not conversation.over and (text := commands.pop(0) if commands else read()) is not None:
        if text.strip():
            end = _tried(runner, conversation, respond(conversation, text), text) or end
    return STATUS[end or "answered"]


def _tried(runner: asyncio.Runner, conversation: Conversation, work: Work, text: str = "") -> TurnStop | None:
    """How it ended, also where it was cancelled: the conversation goes on."""
    before = len(conversation.entries)
    try:
        end = run(runner, _done(work))
    except KeyboardInterrupt:
        end = "cancelled"
    if lines := conversation.lines:
        lines.bring_back([] if end in GOOD_ENDS else [*_unsaid(conversation, before, text), *lines.rest()])
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


def _greet(conversation: Conversation, notices: tuple[str, ...]) -> None:
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
