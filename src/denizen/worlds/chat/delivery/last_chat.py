"""The chat of the last message from outside: heartbeats report there."""

import asyncio
import logging
from pathlib import Path

import msgspec

from denizen.config.files import write_private
from denizen.errors import ConfigError
from denizen.ports import InboundMessage
from denizen.runtime.clock import Clock
from denizen.worlds.chat.ledger import ledger

INTERNAL = frozenset({"cli", ledger.SYSTEM})
"""Channels that don't count as outside."""
_WRITE_INTERVAL_S = 1.0
"""Minimum seconds between two writes."""
_log = logging.getLogger(__name__)


class LastChat(msgspec.Struct, frozen=True):
    """The contents of `state.json`."""

    last_channel: str = ""
    last_chat: str = ""


class LastChatFile:
    """Keeps the last chat in the home's `state.json`: `now` is current, and `run` writes it soon after."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self.now = self._kept = read_last_chat(home)
        self._path = home / "state.json"
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
        kept_at = float("-inf")
        try:
            while True:
                await self._changed.wait()
                if (rest := kept_at + _WRITE_INTERVAL_S - self._clock.monotonic()) > 0:
                    await self._clock.sleep(rest)
                self._changed.clear()
                kept_at = self._clock.monotonic()
                self._keep()
        finally:
            self._keep()

    def _keep(self) -> None:
        if self.now == self._kept:
            return
        self._kept = self.now
        try:
            write_private(self._path, msgspec.json.format(msgspec.json.encode(self.now)), sync=False)
        except ConfigError as error:  # no reason to refuse messages
            _log.warning("Can't write the last chat: %s", error)


def read_last_chat(home: Path) -> LastChat:
    """The last chat that was written; empty if the file is missing or damaged."""
    try:
        return msgspec.json.decode((home / "state.json").read_bytes(), type=LastChat)
    except (OSError, msgspec.DecodeError):
        return LastChat()
