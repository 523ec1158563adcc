"""The channel: how messages come from a chat service, and how replies get there."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from denizen.errors import DenizenError
from denizen.ports.queue import InboundMessage, OutboundMessage
from denizen.runtime.clock import Clock

LengthUnit = Literal["characters", "utf16", "bytes"]
"""What a service counts in a text: code points, UTF-16 units, or bytes of UTF-8."""
Live = Literal["none", "draft", "edit", "stream"]
"""How a reply is shown while it is written: not at all, as a draft that vanishes, by editing the message that becomes
the reply, or as a stream that the service ends with it."""


class ChannelLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one message of a channel may hold, and what the service can do.

    `length` of a text is in `unit`s (0: any). `media_in` and `media_out` are the most bytes of a file (0: no files).
    A preview may be shown every `live_interval` seconds. A channel `reconciles` if it can look whether a message was
    sent. `replays_with_new_ids`: after a reconnect the service may bring old messages again, with other ids.
    """

    length: int = 0
    unit: LengthUnit = "characters"
    markup: str = "plain"
    """The dialect that the channel turns the model's Markdown into, for people: `plain`, `MarkdownV2`, `mrkdwn` …"""
    media_in: int = 0
    media_out: int = 0
    live: Live = "none"
    live_interval: float = 1.0
    buttons: bool = False
    threads: bool = False
    groups: bool = False
    reconciles: bool = False
    replays_with_new_ids: bool = False

    def measure(self, text: str) -> int:
        """The length of a text, in this channel's units."""
        match self.unit:
            case "characters":
                return len(text)
            case "utf16":
                return len(text.encode("utf-16-le", errors="replace")) // 2
            case "bytes":
                return len(text.encode(errors="replace"))


class Sent(msgspec.Struct, frozen=True):
    """What became of a message.

    It was `sent`, with the service's `native_id` for it; it `failed` and why; it may have been sent (`unknown`); or the
    service takes it `later`, in `retry_after` seconds: nothing was sent.
    """

    state: Literal["sent", "failed", "unknown", "later"] = "sent"
    reason: str = ""
    native_id: str = ""
    retry_after: float = 0.0


class RateLimited(DenizenError):
    """A service refuses a preview for now; no more are shown for that reply."""


class ChannelRefused(DenizenError):
    """A service refuses the account: its token is wrong, revoked or used by another gateway; says what to do."""


Accept = Callable[[InboundMessage], Awaitable[bool]]
"""Makes a message durable. False: there is nothing to keep, because it came before or its sender may not speak here."""


class Channel(Protocol):
    """A chat service, or anything else that brings messages and takes replies."""

    name: str

    @property
    def limits(self) -> ChannelLimits:
        """What one message may hold; the host splits what is longer."""

    async def receive(self, accept: Accept) -> None:
        """Hand each message to `accept` until cancelled, and confirm it to the service once that returns.

        A message that wasn't confirmed is delivered again, with the same id. Messages that the account itself wrote are
        dropped. A thread is a chat of its own, and each chat a session. Connects by itself, and raises what ends a
        connection: the host calls again with a delay. Raises ChannelRefused.
        """

    async def send(self, message: OutboundMessage) -> Sent:
        """Send it whole or not at all; failures are data.

        With `edits` it replaces the preview of that native id, or is sent anew if the service refuses that. If it
        `may_be_sent`, a channel that `reconciles` looks for its id first, and sends it if it isn't there; others may
        repeat an edit, which does no harm, but never send it again: they answer `unknown`.
        """


class PreviewingChannel(Channel, Protocol):
    """A channel that shows a reply while it is written: its `limits.live` isn't `none`."""

    async def show(self, chat: str, draft: str, text: str) -> str:
        """Show the text so far; the draft's native id, to show the next text in. Raises RateLimited.

        `draft` is empty at first. A preview isn't a delivery: what else it raises is dropped, and another text follows.
        """


class ChannelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every channel's table `[channels.NAME]` has."""

    type: str = ""
    """The kind of channel; empty: its name."""
    allow: list[str] = []
    """Ids of the senders who may speak; an empty list: nobody but those who were paired."""
    groups: Literal["addressed", "all", "none"] = "addressed"
    """Which messages of a group are answered."""
    voice: bool = True
    """Voice messages become text where a transcription endpoint is configured."""


class ChannelHome(NamedTuple):
    """What a host lends to a channel: its name, a private folder for its state and for received files, and the time."""

    name: str
    folder: Path
    clock: Clock


class ChannelKind(NamedTuple):
    """A kind of channel: the object of an entry point in the group `denizen.channels`, whose name is the kind's.

    `check` asks the service whether the settings work, and returns who the account is; it raises ChannelRefused or
    ConfigError. `steps` says what to do in the service first, with the link. `account` names the account of some
    settings, without its secret: no two gateways may use the same, unless it is empty.
    """

    settings: type[ChannelSettings]
    connect: Callable[[Any, ChannelHome], Channel]
    check: Callable[[Any], Awaitable[str]]
    account: Callable[[Any], str]
    steps: str
