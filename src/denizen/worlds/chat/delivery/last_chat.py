"""The chat of the last message from outside: heartbeats report there."""

import asyncio
from pathlib import Path

import msgspec

from denizen.ports import InboundMessage
from denizen.runtime.clock import Clock
from denizen.worlds.chat.delivery.state_files import read_state, write_changes
from denizen.worlds.chat.ledger import ledger

INTERNAL = frozenset({"cli", ledger.SYSTEM})
"""Channels that don't count as outside."""
_WRITE_INTERVAL_S = 1.0
"""Minimum seconds between two writes."""


class LastChat(msgspec.Struct, frozen=True):
    """The contents of `state.json`."""

    last_channel: str = ""
    last_chat: str = ""


class LastChatFile:
    """Keeps the last chat in the home's `state.json`: `now` is current, and `run` writes it soon after."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self._path = home / "state.json"
        self.now = read_state(self._path, LastChat) or LastChat()
        self._clock = clock
        self._changed = asyncio.Event()

    def remember(self, message: InboundMessage) -> None:
        """Remember the chat of a message from outside."""
        last = LastChat(message.channel, message.chat)
        if message.channel not in INTERNAL and ledger.ORIGIN not in message.metadata and last != self.now:
            self.now = last
            self._changed.set()

    async def run(self) -> None:
        """Write the last chat until cancelled: at once, but at most once a second."""
        await write_changes(
            self._path, self._changed, lambda: self.now, clock=self._clock, interval_s=_WRITE_INTERVAL_S
        )
