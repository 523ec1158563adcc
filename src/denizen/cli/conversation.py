"""A conversation at the terminal: an agent, one of its sessions, and its turns."""

import asyncio
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from denizen.cli.attachments import compose, unattached
from denizen.cli.host import JsonHost, terminal_lines
from denizen.cli.options import CommandOptions
from denizen.cli.output import error_width, say
from denizen.cli.terminal import Terminal
from denizen.cli.text import cut, one_line
from denizen.cli.turns import opened, turn_of
from denizen.config.load import Loaded
from denizen.engine.resume import nothing_left, question_of, unfinished
from denizen.entries import AnyEntry, AssistantEntry, UserEntry
from denizen.errors import ConfigError, DenizenError
from denizen.events import Notice, TurnStop
from denizen.messages import Text, UserMessage, UserPart
from denizen.ports import Session
from denizen.sessions import new_name
from denizen.worlds.server_prompts import prompt_said

if TYPE_CHECKING:
    from denizen.cli.live import LivePrompt

MAX_LINE_CELLS = 240
"""Cells of what was said last, as it is shown."""


class TerminalChat:
    """An agent and one of its sessions, each of which can be changed for another.

    A session is made with its first message. `typed`: a person types, also while the agent works, which hears that with
    its next model call; slash commands are kept in `commands`. They type at the `live` prompt on terminals that can
    show it, or else in `lines`. `outputs` are those of tools that were shown in part;
    `own_output` is that of the person's own commands, which goes with their next message.
    """

    def __init__(self, options: CommandOptions, loaded: Loaded, *, typed: bool) -> None:
        self.options = options
        self.agent = options.agent(loaded)
        self.name = options.session
        self.over = False
        self.outputs: list[str] = []
        self.own_output = ""
        self.live: LivePrompt | None = None
        self.lines = terminal_lines() if typed else None
        self.commands = self.lines.commands if self.lines else []
        self.loaded = loaded
        self._typed = typed
        self._session: Session | None = None
        self._open = AsyncExitStack()

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """The session's; none before it is open."""
        return self._session.entries if self._session else ()

    def host(self) -> Terminal | JsonHost:
        """The host of the next turn."""
        return self.options.host(self.commands if self._typed else None, self.live, self.lines, self.outputs)

    async def say(self, text: str) -> TurnStop:
        """One turn; how it ended. Raises ToolRefused for a prompt of an MCP server that it doesn't have."""
        parts = await self._composed(text)
        parts += await prompt_said(self.agent, await self.session(), text)
        if self.own_output:
            parts.append(Text(self.own_output))
            self.own_output = ""
        return await self._turn(UserMessage(parts), unattached(text))

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
        agent = self.options.agent(dataclasses.replace(self.loaded, config=config))
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
                turn = dataclasses.replace(turn, queued=partial(self._entered, typing.waiting, host))
            return await turn_of(self.agent, session, message, host, turn)

    async def _composed(self, text: str) -> list[UserPart]:
        """The parts of a message. To read the documents that it mentions takes a while, in which the screen goes on."""
        if "@" not in text:
            return compose(text, self.agent.workspace)
        return await asyncio.to_thread(compose, text, self.agent.workspace)

    async def _entered(self, waiting: Callable[[], Sequence[str]], host: Terminal | JsonHost) -> list[UserMessage]:
        """What was entered meanwhile, with the files that it mentions; of one that can't be used, the words alone."""
        said: list[UserMessage] = []
        for text in waiting():
            parts: list[UserPart] = [Text(text)]
            try:
                parts = await self._composed(text)
            except ConfigError as why:
                host.emit(Notice(f"Not attached: {why}", "warning"))
            for notice in unattached(text):
                host.emit(Notice(notice, "warning"))
            said.append(UserMessage(parts))
        return said

    async def reopen(self) -> TurnStop | None:
        """Show what was said last; ask the question that the session waits for. How the turn ended, if one ran."""
        if not (self.options.quiet or self.options.json):
            for line in _last_said(self.entries):
                say(cut(f"  {line}", min(error_width() - 1, MAX_LINE_CELLS)), dim=True)
        if question_of(self.entries):
            return await self.go_on()
        if unfinished(self.entries):
            with self.host() as host:
                host.emit(Notice("The last turn is unfinished: /continue resumes it.", "warning"))
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
    if answer:
        yield answer
