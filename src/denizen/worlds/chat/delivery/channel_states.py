"""The state of each channel: connected or failing, its last message and last error. Stored in the home."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Never

import msgspec
from msgspec.structs import replace

from denizen.ports.channel import Accept, Channel, ChannelRefused, Sent
from denizen.runtime.clock import BackOff, Clock
from denizen.worlds.chat.delivery.state_files import read_state, try_to_write, write_changes

HEALTHY_AFTER_S = 240.0
"""A channel counts as connected again after receiving this long without a failure.

Longer than channels wait for a service that accepts connections and never answers: Slack's 120 s, XMPP's 180 s.
"""
ALARM_AFTER_S = 300.0
"""How long a channel may fail, or a message may wait for its service, before the owner is alerted."""
_RECEIVE_RETRIES = BackOff(1.0, 60.0)
"""Delays before a channel that failed receives again."""
_WRITE_INTERVAL_S = 5.0
_log = logging.getLogger(__name__)


class ChannelState(msgspec.Struct, frozen=True, omit_defaults=True):
    """A channel's state; times are timezone-aware."""

    connected: bool = False
    last_message: datetime | None = None
    last_error: str = ""
    last_error_at: datetime | None = None

    def line(self, *, is_running: bool = True) -> str:
        """The state in one line; if the gateway isn't running, its last state."""
        words = ["connected" if self.connected else "not connected" if is_running else "the gateway isn't running"]
        words.append(f"last message {_minute(self.last_message)}" if self.last_message else "no message yet")
        if self.last_error and self.last_error_at:
            words.append(f"last error {_minute(self.last_error_at)}: {self.last_error}")
        return "; ".join(words)


class ChannelStates:
    """Tracks the states of a gateway's channels.

    A channel raises one alarm if it stays down, is refused, or takes no messages for long.
    """

    def __init__(
        self, path: Path, names: Iterable[str], clock: Clock, alarm: Callable[[str, str], Awaitable[None]]
    ) -> None:
        known = read_state(path, dict[str, ChannelState]) or {}
        self._path = path
        self._clock = clock
        self._alarm = alarm
        self._states = {name: known.get(name, ChannelState()) for name in names}
        self._receives_since: dict[str, float] = {}
        self._fails_since: dict[str, float] = {}
        self._alarmed: set[str] = set()
        self._stuck_chats: set[tuple[str, str]] = set()
        self._changed = asyncio.Event()

    @property
    def now(self) -> dict[str, ChannelState]:
        """The current states, by name."""
        return {name: replace(state, connected=self._is_connected(name)) for name, state in self._states.items()}

    async def keep_receiving(
        self,
        channel: Channel,
        new_accept: Callable[[], Awaitable[Accept]],
        explain: Callable[[Exception], str],
    ) -> Never:
        """Receive until cancelled; after a failure, receive again after a doubling delay, with a new `accept`."""
        failures = 0
        while True:
            began = self._clock.monotonic()
            self.note_start(channel.name)
            try:
                await channel.receive(await new_accept())
                raise ConnectionResetError("The connection ended.")
            except Exception as error:  # noqa: BLE001 (the boundary to a channel: the others go on)
                failures = 1 if self._clock.monotonic() - began > _RECEIVE_RETRIES.max_s else failures + 1
                delay = _RECEIVE_RETRIES.after(failures)
                why = explain(error)
                _log.error("Channel %s receives again in %g s: %s", channel.name, delay, why)
                await self.fail(channel.name, why, is_refused=isinstance(error, ChannelRefused))
            await self._clock.sleep(delay)

    def note_start(self, name: str) -> None:
        """Record that a channel starts receiving."""
        self._receives_since[name] = self._clock.monotonic()
        self._changed.set()

    def note_message(self, name: str) -> None:
        """Record that a channel delivered a message."""
        self._recover(name)
        self._states[name] = replace(self._states[name], last_message=self._clock.now())
        self._changed.set()

    async def fail(self, name: str, error: str, *, is_refused: bool) -> None:
        """Record that a channel's connection ended, or that its service refuses the account."""
        now = self._clock.monotonic()
        if self._is_connected(name):
            self._recover(name)
        self._receives_since.pop(name, None)
        since = self._fails_since.setdefault(name, now)
        self._states[name] = replace(self._states[name], last_error=error, last_error_at=self._clock.now())
        self._changed.set()
        if name not in self._alarmed and (is_refused or now - since >= ALARM_AFTER_S):
            self._alarmed.add(name)
            what = "is refused" if is_refused else "can't be reached"
            await self._alarm(name, f"Channel {name} {what}; its messages wait. {error}")

    async def note_outcome(self, name: str, chat: str, sent: Sent, waited_s: float) -> None:
        """Record the outcome of a send, and how long its message has waited.

        It also raises one alarm if the service can be reached, but takes no messages to some chats for long.
        """
        if sent.state == "sent":
            self._stuck_chats.discard((name, chat))
        elif sent.state == "later" and waited_s >= ALARM_AFTER_S and name not in self._fails_since:
            is_known = any(stuck == name for stuck, _ in self._stuck_chats)
            self._stuck_chats.add((name, chat))
            if not is_known:
                await self._alarm(name, f"Channel {name} can't send to {chat}; messages wait. {sent.reason}")

    async def run(self) -> None:
        """Write the states soon after they change, until cancelled."""
        try:
            await write_changes(
                self._path, self._changed, lambda: self.now, clock=self._clock, interval_s=_WRITE_INTERVAL_S
            )
        finally:
            try_to_write(self._path, self._states)

    def _is_connected(self, name: str) -> bool:
        since = self._receives_since.get(name)
        if since is None:
            return False
        return name not in self._fails_since or self._clock.monotonic() - since >= HEALTHY_AFTER_S

    def _recover(self, name: str) -> None:
        self._fails_since.pop(name, None)
        self._alarmed.discard(name)


def _minute(time: datetime) -> str:
    return f"{time.astimezone():%Y-%m-%d %H:%M}"
