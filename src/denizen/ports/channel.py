"""The channel: how messages come from a chat service, and how replies get there."""

from collections.abc import Awaitable, Callable
from typing import Literal, Protocol

import msgspec

from denizen.ports.queue import InboundMessage, OutboundMessage


class ChannelLimits(msgspec.Struct, frozen=True):
    """What one message of a channel may hold: characters (0: any number), and whether it takes media."""

    chars: int = 0
    media: bool = False


class Sent(msgspec.Struct, frozen=True):
    """What became of a message: it was sent, it was not and why, or it may have been (`unknown`)."""

    state: Literal["sent", "failed", "unknown"] = "sent"
    reason: str = ""


Accept = Callable[[InboundMessage], Awaitable[bool]]
"""Makes a message durable: `TurnQueue.put`. False: it was accepted before, which is as good."""


class Channel(Protocol):
    """A chat service, or anything else that brings messages and takes replies."""

    name: str

    @property
    def limits(self) -> ChannelLimits:
        """What one message may hold; the host splits what is longer."""

    async def receive(self, accept: Accept) -> None:
        """Hand each message to `accept` until cancelled, and acknowledge it to the service once that returns.

        A message that wasn't acknowledged is delivered again, with the same id. Every message has the key of its
        session: one per chat.
        """

    async def send(self, message: OutboundMessage) -> Sent:
        """Send it whole or not at all; failures are data.

        A message whose id was sent before isn't sent again: after `unknown`, the same call finds out what became of it,
        or answers `unknown` again.
        """
