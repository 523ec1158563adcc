"""A queue in memory, for tests and for programs that need no more."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from denizen.ports.host import Answer, Control, Interrupt, Parked, Stop
from denizen.ports.queue import InboundMessage, OutboundMessage, ParkedTurn, TurnHandler
from denizen.runtime.clock import Clock, SystemClock


@dataclass(slots=True)
class _SessionQueue:
    """A session's messages; the first is the one whose turn it is, and stays until that is over.

    `taken` of the `controls` were handed to the attempt that runs.
    """

    messages: deque[InboundMessage] = field(default_factory=deque)
    controls: list[Control] = field(default_factory=list)
    controlled: asyncio.Event = field(default_factory=asyncio.Event)
    taken: int = 0
    attempt: int = 0
    failures: int = 0
    running: bool = False
    parked: bool = False

    @property
    def is_ready(self) -> bool:
        answered = any(isinstance(control, Answer | Stop | Interrupt) for control in self.controls)
        return bool(self.messages) and not self.running and (answered or not self.parked)


@dataclass(slots=True)
class _MemoryTurn:
    message: InboundMessage
    attempt: int
    _session: _SessionQueue

    def controls(self) -> Sequence[Control]:
        arrived = self._session.controls[self._session.taken :]
        self._session.taken += len(arrived)
        return arrived

    async def changed(self) -> None:
        while len(self._session.controls) == self._session.taken:
            self._session.controlled.clear()
            await self._session.controlled.wait()


class MemoryQueue:
    """A `TurnQueue` that forgets everything with its process.

    `failed` has the messages that were given up, and why; `outbox` what handlers had to send, by id.
    """

    def __init__(self, attempts: int = 3, clock: Clock | None = None) -> None:
        self.outbox: dict[str, OutboundMessage] = {}
        self._clock = clock or SystemClock()
        self.failed: list[tuple[InboundMessage, Exception]] = []
        self._attempts = attempts
        self._accepted: set[tuple[str, str]] = set()
        self._sessions: dict[str, _SessionQueue] = {}
        self._changed = asyncio.Event()

    async def put(self, message: InboundMessage) -> bool:
        """Accept the message, unless its channel's message of that id was accepted before."""
        if (message.channel, message.id) in self._accepted:
            return False
        self._accepted.add((message.channel, message.id))
        self._sessions.setdefault(message.session_key, _SessionQueue()).messages.append(message)
        self._changed.set()
        return True

    async def control(self, session_key: str, control: Control) -> bool:
        """Hand the control to the session's turn; False: it has none."""
        session = self._sessions.get(session_key)
        if session:
            session.controls.append(control)
            session.controlled.set()
            self._changed.set()
        return session is not None

    async def serve(self, handler: TurnHandler) -> None:
        """Run turns until cancelled."""
        async with asyncio.TaskGroup() as turns:
            while True:
                for session in [session for session in self._sessions.values() if session.is_ready]:
                    session.running = True
                    turns.create_task(self._run(session, handler))
                self._changed.clear()
                await self._changed.wait()

    async def _run(self, session: _SessionQueue, handler: TurnHandler) -> None:
        message, over = session.messages[0], False
        session.attempt += 1
        session.parked = False
        again: list[Control] = []
        try:
            outcome = await handler(_MemoryTurn(message, session.attempt, session))
            session.parked = isinstance(outcome, Parked)
            over = not session.parked
            await self._keep(outcome, session)
        except BaseException as error:
            again = [control for control in session.controls[: session.taken] if isinstance(control, Answer)]
            if not isinstance(error, Exception):
                raise  # it was cancelled; any other error is the turn's own, and the session goes on
            session.failures += 1
            if over := session.failures >= self._attempts:
                self.failed.append((message, error))
        finally:
            session.controls[: session.taken] = again
            session.taken = 0
            session.running = False
            self._changed.set()
        if over:
            session.messages.popleft()
            del self._sessions[message.session_key]
            if session.messages:
                self._sessions[message.session_key] = _SessionQueue(session.messages)

    async def _keep(self, outcome: OutboundMessage | InboundMessage | Parked | None, session: _SessionQueue) -> None:
        """Keep what is to be sent, or said to another session, and when a parked turn goes on without an answer."""
        if isinstance(outcome, ParkedTurn) and outcome.until:

            def wake() -> None:
                session.parked = False
                self._changed.set()

            rest = (outcome.until - self._clock.now()).total_seconds()
            asyncio.get_running_loop().call_later(max(rest, 0.0), wake)
        sent = outcome.question if isinstance(outcome, ParkedTurn) else outcome
        if isinstance(sent, OutboundMessage):
            self.outbox.setdefault(sent.id, sent)
        elif isinstance(sent, InboundMessage):
            await self.put(sent)
