"""What `denizen chat` holds on to between turns."""

import dataclasses
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import msgspec

from denizen.cli.attachments import compose, unattached
from denizen.cli.json_lines import JsonLines
from denizen.cli.lines import terminal_lines
from denizen.cli.options import TurnOptions
from denizen.cli.terminal import Terminal
from denizen.cli.turns import opened
from denizen.config.load import Loaded
from denizen.engine import run_turn
from denizen.engine.resume import nothing_left, unfinished
from denizen.entries import AnyEntry
from denizen.errors import DenizenError
from denizen.events import Notice, TurnStop
from denizen.messages import UserMessage
from denizen.ports import Session
from denizen.sessions import new_name

if TYPE_CHECKING:
    from denizen.cli.live import Live


class Conversation:
    """An agent and one of its sessions, each of which can be changed for another.

    A session is made with its first message. `typed`: a person types, also while the agent works; that is said to it,
    but slash commands are kept in `commands`. Where they type then is `live` on terminals that can show it, or else
    `lines`. `outputs` are what tools gave and was shown in part.
    """

    def __init__(self, options: TurnOptions, loaded: Loaded, *, typed: bool) -> None:
        self.options = options
        self.agent = options.agent(loaded)
        self.name = options.session
        self.over = False
        self.commands: list[str] = []
        self.outputs: list[str] = []
        self.live: Live | None = None
        self.lines = terminal_lines() if typed else None
        self._loaded = loaded
        self._typed = typed
        self._session: Session | None = None
        self._open = AsyncExitStack()

    @property
    def entries(self) -> Sequence[AnyEntry]:
        """What was said; nothing in a session that isn't open yet."""
        return self._session.entries if self._session else ()

    def host(self) -> Terminal | JsonLines:
        """Where it is shown what goes on."""
        return self.options.host(self.commands if self._typed else None, self.live, self.lines, self.outputs)

    async def say(self, text: str) -> TurnStop:
        """One turn; how it ended."""
        return await self._turn(UserMessage(compose(text, self.agent.workspace)), unattached(text))

    async def go_on(self) -> TurnStop:
        """Go on with the turn that was left unfinished; how it ended. Raises SessionError where there is none."""
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
            result = await run_turn(self.agent, session, message, host, stream=not self.options.no_stream)
        return result.stop_reason

    async def _leave(self) -> None:
        self._session = None
        await self._open.aclose()
