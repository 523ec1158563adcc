"""A channel in memory that simulates the features and faults of services."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from denizen.ports import Accept, ChannelLimits, ChannelRefused, InboundMessage, OutboundMessage, RateLimited, Sent
from denizen.runtime.clock import Clock, SystemClock
from denizen.sessions import SessionKey
from denizen.worlds.chat.delivery.channels.outgoing import send_refusal


class MemoryChannel:
    """A `Channel` without a service: `write` delivers a message, and `sent` has the sent ones, by id.

    Set `flood_s` to refuse messages and previews for that many seconds (0: accept them), `loses_answer` to accept the
    next message without an answer, `refuses_edits`, `is_revoked` to refuse the token, or `is_down` to be unreachable.
    """

    def __init__(self, name: str = "memory", limits: ChannelLimits | None = None, clock: Clock | None = None) -> None:
        self.name = name
        self.limits = limits or ChannelLimits(reconciles=True)
        self.sent: dict[str, OutboundMessage] = {}
        self.flood_s = 0.0
        self.loses_answer = self.refuses_edits = self.is_revoked = self.is_down = False
        self._clock = clock or SystemClock()
        self._written: deque[InboundMessage] = deque()
        self._arrived = asyncio.Event()
        self._is_dropped = False
        self._numbers = count(1)
        self._native_ids: dict[str, str] = {}
        self._chats: defaultdict[str, dict[str, str]] = defaultdict(dict)

    def write(self, content: str, *, chat: str = "home", sender: str = "ann", **fields: Any) -> InboundMessage:
        """Write in a chat as a person, or as the channel itself (if `sender` is its name).

        `fields` are further fields of the message: `is_group=True`, `edit_of="…"`.
        """
        key = SessionKey(chat, "group" if fields.get("is_group") else "direct", self.name)
        message = InboundMessage(self.name, chat, sender, content, str(key), sent_at=self._clock.now())
        return self.deliver(replace(message, **fields))

    def deliver(self, message: InboundMessage) -> InboundMessage:
        """Deliver a message, which may have been delivered before."""
        self._written.append(message)
        self._arrived.set()
        return message

    def press(self, label: str) -> InboundMessage:
        """Press a button of the last message."""
        [*_, last] = self.sent.values()
        [text] = [choice.text for choice in last.choices if choice.label == label]
        return self.write(text, chat=last.chat)

    def drop_connection(self) -> None:
        """End the connection: `receive` raises ConnectionResetError."""
        self._is_dropped = True
        self._arrived.set()

    def shown(self, chat: str = "home") -> Sequence[str]:
        """The current texts of the channel's messages in a chat."""
        return [*self._chats[chat].values()]

    async def receive(self, accept: Accept) -> None:
        """Hand each message to `accept` until cancelled."""
        self._is_dropped = False
        while not self._is_dropped:
            if self.is_down:
                raise ConnectionRefusedError(f"{self.name} can't be reached.")
            if self.is_revoked:
                raise ChannelRefused(f"{self.name} refuses the token; get a new one.")
            while self._written:
                if (message := self._written[0]).sender != self.name:
                    fetch = partial(self._fetch, message.media)
                    await accept(replace(message, media=()), fetch if message.media else None)
                self._written.popleft()
            self._arrived.clear()
            await self._arrived.wait()
        raise ConnectionResetError("the connection was dropped")

    async def send(self, message: OutboundMessage) -> Sent:
        """Send it, once."""
        if refusal := self._refusal(message):
            return refusal
        is_edit = bool(message.edits) and not self.refuses_edits
        if message.may_be_sent and not self.limits.reconciles and not is_edit:
            return Sent("unknown", f"Channel {self.name} can't tell whether it was sent.")
        if message.id not in self.sent:
            self.sent[message.id] = message
            self._native_ids[message.id] = message.edits if is_edit else self._new_native_id()
            self._chats[message.chat][self._native_ids[message.id]] = message.content
        if self.loses_answer:
            self.loses_answer = False
            return Sent("unknown", "The answer was lost.")
        return Sent(native_id=self._native_ids[message.id])

    async def show(self, chat: str, draft: str, text: str) -> str:
        """Show a preview; drafts aren't kept."""
        if self.flood_s:
            raise RateLimited(f"Channel {self.name} refuses messages for {self.flood_s:g} s.")
        native_id = draft or self._new_native_id()
        if self.limits.live != "draft":
            self._chats[chat][native_id] = text
        return native_id

    def _new_native_id(self) -> str:
        return f"{self.name}-{next(self._numbers)}"

    async def _fetch(self, media: Sequence[str], message: InboundMessage) -> InboundMessage:
        """The message with its files, without those that are too large."""
        kept = tuple(path for path in media if Path(path).stat().st_size <= self.limits.media_in)
        if len(kept) == len(media):
            return replace(message, media=kept)
        note = f"[A file was larger than {self.limits.media_in:,} bytes and wasn't received.]"
        return replace(message, media=kept, content=f"{message.content}\n{note}".strip())

    def _refusal(self, message: OutboundMessage) -> Sent | None:
        if self.is_revoked:
            return Sent("later", "The token was revoked.", retry_after=60)
        if self.is_down:
            return Sent("later", f"{self.name} can't be reached.", retry_after=5)
        if self.flood_s:
            return Sent("later", "Too many messages.", retry_after=self.flood_s)
        refusal = send_refusal(message, self.limits)
        return Sent("failed", refusal) if refusal else None
