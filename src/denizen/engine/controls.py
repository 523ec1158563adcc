"""The controls of a running turn: what the person says meanwhile, and waiting for it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from denizen.engine.session_state import SessionState
from denizen.engine.turn_over import Interrupted, TurnOver
from denizen.messages import Text, UserMessage
from denizen.ports import Answer, FollowUp, Interrupt, Steer, Stop, TurnIO

_T = TypeVar("_T")


class Controls:
    """Controls that arrived and weren't dealt with yet; `stopped` stays True."""

    def __init__(self, io: TurnIO, state: SessionState) -> None:
        self.steers: list[UserMessage] = []
        self.follow_ups: list[UserMessage] = []
        self.interrupts: list[UserMessage] = []
        self.answers: list[Answer] = []
        self.stopped = False
        self._io = io
        self._state = state
        self._arrival: asyncio.Task[None] | None = None

    @property
    def messages(self) -> list[UserMessage]:
        """Undelivered messages for the model, most urgent first."""
        return [*self.interrupts, *self.steers, *self.follow_ups]

    def listen(self) -> bool:
        """Collect new controls; True if the person has stopped the turn."""
        for control in self._io.controls():
            match control:
                case Steer(text, message_id):
                    self.steers.append(UserMessage([Text(text)], message_id))
                case FollowUp(text, message_id):
                    self.follow_ups.append(UserMessage([Text(text)], message_id))
                case Interrupt(_, message_id) if message_id and message_id in self._state.user_ids:
                    pass  # it was taken in before the turn was parked, or taken over: later calls aren't dropped for it
                case Interrupt(text, message_id):
                    self.interrupts.append(UserMessage([Text(text)], message_id))
                case Stop():
                    self.stopped = True
                case Answer():
                    self.answers.append(control)
        return self.stopped

    async def run_until_stopped(self, work: Coroutine[Any, Any, _T], *, interruptible: bool = False) -> _T:
        """The work's result. A stop cancels the work and ends the turn.

        Raises Interrupted if the work is `interruptible` and the person interrupts.
        """
        working = asyncio.create_task(work)
        try:
            while not working.done():
                if self.stopped:
                    raise TurnOver("cancelled")
                if interruptible and self.interrupts:
                    raise Interrupted
                if await self._changed_or_done(working):
                    self.listen()
        finally:
            if working.cancel():
                await asyncio.wait({working})
        return working.result()

    async def changed(self) -> None:
        """Return once `listen` has something to collect, or the turn was stopped."""
        if not self.stopped:
            await self._changed_or_done(None)

    def close(self) -> None:
        """Wait for no more controls."""
        if self._arrival:
            self._arrival.cancel()

    async def _changed_or_done(self, working: asyncio.Task[Any] | None) -> bool:
        """Wait for the work or a control; True for a control. All waiters share one task of the host."""
        if self._arrival is None or self._arrival.done():
            self._arrival = asyncio.create_task(self._io.changed())
        arrival = self._arrival
        await asyncio.wait({arrival, working or arrival}, return_when=asyncio.FIRST_COMPLETED)
        if arrival.done():
            arrival.result()
        return arrival.done()
