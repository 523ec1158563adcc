"""The channel: how messages come from a chat service, and how replies get there."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from denizen.errors import DenizenError
from denizen.ports.queue import InboundMessage, OutboundMessage
from denizen.runtime.clock import Clock

LengthUnit = Literal["characters", "utf16", "bytes"]
"""The unit of a service's length limit: code points, UTF-16 units, or UTF-8 bytes."""
Live = Literal["none", "draft", "edit", "stream"]
"""How a reply is shown while it is written: not at all, as a draft that vanishes, by editing a message until it is the
reply, or as a stream that ends with the reply."""


class ChannelLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a message on a channel, and the features of the service.

    `length` is in `unit`s (0: no limit). `media_in` and `media_out` are the largest files in bytes (0: no files). A
    preview may be shown every `live_interval` seconds. A channel `reconciles` if it can find out whether a message was
    sent. `replays_with_new_ids`: after a reconnect the service may deliver old messages again, with new ids.
    """

    length: int = 0
    unit: LengthUnit = "characters"
    markup: str = "plain"
    """The dialect that the channel converts the model's Markdown to (informative): `plain`, `MarkdownV2`, `mrkdwn` …"""
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
    """The outcome of sending a message.

    It was `sent`, with the service's `native_id`; it `failed`, with a `reason`; it may have been sent (`unknown`); or
    nothing was sent, and the service takes it `later`, after `retry_after` seconds.
    """

    state: Literal["sent", "failed", "unknown", "later"] = "sent"
    reason: str = ""
    native_id: str = ""
    retry_after: float = 0.0


class RateLimited(DenizenError):
    """The service temporarily refuses previews; no more are shown for that reply."""


class ChannelRefused(DenizenError):
    """The service refuses the account: its token is wrong, revoked or used by another gateway. Says what to do."""


Fetch = Callable[[InboundMessage], Awaitable[InboundMessage]]
"""Downloads a message's files. Returns the message with their paths, and a line in its text for each missing file."""


class Accept(Protocol):
    """Stores a message durably."""

    async def __call__(self, message: InboundMessage, fetch: Fetch | None = None, /) -> bool:
        """Returns False, and fetches nothing, if it was accepted before or its sender isn't allowed."""


class Channel(Protocol):
    """A chat service, or anything else that delivers messages and accepts replies."""

    name: str

    @property
    def limits(self) -> ChannelLimits:
        """The limits of a message; the host splits longer ones."""

    async def receive(self, accept: Accept) -> None:
        """Pass each message to `accept` until cancelled, and confirm it to the service once that returns.

        Unconfirmed messages are delivered again with the same id. Messages from the account itself are dropped. Each
        chat has a session, and a thread is a separate chat. Connects on its own, and raises connection errors; the host
        calls again after a delay. Raises ChannelRefused.
        """

    async def send(self, message: OutboundMessage) -> Sent:
        """Send it whole or not at all; failures are data.

        With `edits` it replaces the preview with that native id; if the service refuses, it is sent as a new message.
        If it `may_be_sent`, a channel that `reconciles` looks for its id first, and sends it only if it certainly isn't
        there. Others may repeat an edit, which does no harm, but never send again: they return `unknown`.
        """


class PreviewingChannel(Channel, Protocol):
    """A channel that shows replies while they are written: its `limits.live` isn't `none`."""

    async def show(self, chat: str, draft: str, text: str) -> str:
        """Show the text so far, and return the draft's native id for the next call. Raises RateLimited.

        `draft` is empty at first. Previews aren't guaranteed: the host ignores other errors and goes on.
        """


class ChannelSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings that every table `[channels.NAME]` has."""

    type: str = ""
    """The kind of channel; empty: the same as its name."""
    allow: list[str] = []
    """Ids of senders who may write to the agent; empty: only paired ones."""
    groups: Literal["addressed", "all", "none"] = "addressed"
    """Which messages in groups are answered."""
    voice: bool = True
    """Transcribe voice messages, if a transcription endpoint is configured."""


class ChannelHome(NamedTuple):
    """What the host provides to a channel: its name, a private folder for state and received files, and a clock."""

    name: str
    folder: Path
    clock: Clock


class ChannelKind(NamedTuple):
    """A kind of channel: the object of an entry point in the group `denizen.channels`, named after the kind.

    `check` tests the settings with the service, and returns the account's name; it raises ChannelRefused or
    ConfigError. `steps` explains the setup at the service, with a link. `account` returns an id for the account,
    without secrets: two gateways can't use the same account, unless the id is empty.
    """

    settings: type[ChannelSettings]
    connect: Callable[[Any, ChannelHome], Channel]
    check: Callable[[Any], Awaitable[str]]
    account: Callable[[Any], str]
    steps: str
