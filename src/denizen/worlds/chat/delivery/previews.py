"""Previews show replies while they are written. They aren't guaranteed; only their ids are stored."""

import asyncio
import logging
from collections.abc import Mapping
from functools import partial

from msgspec.structs import replace

from denizen.events import LlmStart, LlmStream, TextDelta, Withdrawn
from denizen.ports import Channel, InboundMessage, OutboundMessage, PreviewingChannel, RateLimited
from denizen.runtime.clock import Clock
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.delivery.splitting import split_text
from denizen.worlds.chat.events.listeners import Listeners
from denizen.worlds.chat.events.relay import TurnEvent
from denizen.worlds.chat.ledger import ledger, outbound, questions
from denizen.worlds.chat.ledger.reply_options import ReplyOptions

PREVIEW_SUFFIX = " …"
"""Appended to a preview's text, to show that it isn't complete."""
_SETTLE_TIMEOUT_S = 10.0
"""How many seconds a delivery waits for a preview that is being sent."""
_CHECK_INTERVAL_S = 60.0
"""Seconds without a change after which a preview checks whether its turn still runs."""
_log = logging.getLogger(__name__)


class _Preview:
    """The reply of a turn so far; `is_over` once its delivery has begun, or the service refuses more."""

    def __init__(self, session_key: str, message_id: str) -> None:
        self.key = session_key, message_id
        self.message: InboundMessage | None = None
        self.draft = ""
        self.text = ""
        self.changed = asyncio.Event()
        self.showing = asyncio.Lock()
        self.is_over = False

    def hear(self, event: TurnEvent) -> None:
        match event.event:
            case LlmStream(TextDelta(delta)):
                self.text += delta
            case LlmStart():
                self.text = ""
            case Withdrawn(text):
                self.text = self.text.removesuffix(text)
            case _:
                return
        self.changed.set()


class Previews:
    """Shows the replies of turns, in this process and in workers, on channels that support previews.

    A delivery replaces the preview of the message that it answers. After the `message` tool has sent the reply, a turn
    shows no more previews; if a crash makes it show one all the same, its final text is sent and replaces the preview.
    """

    def __init__(self, outbox: Outbox, listeners: Listeners, clock: Clock) -> None:
        self._outbox = outbox
        self._channels: Mapping[str, Channel] = outbox.channels
        self._listeners = listeners
        self._clock = clock
        self._previews: dict[tuple[str, str], _Preview] = {}
        self._tasks: asyncio.TaskGroup | None = None
        if any(map(self.is_live, self._channels)):
            outbox.settle_preview = self.settle
            listeners.is_live = self.is_live
            listeners.of_turns.append(self._hear)

    def is_live(self, channel: str) -> bool:
        """Whether the channel shows previews."""
        found = self._channels.get(channel)
        return found is not None and found.limits.live != "none"

    async def run(self) -> None:
        """Show replies until cancelled."""
        if not any(map(self.is_live, self._channels)):
            return
        async with self._listeners.listening(), asyncio.TaskGroup() as self._tasks:
            await asyncio.Event().wait()

    async def settle(self, message: OutboundMessage) -> None:
        """End the previews of this message's reply, and wait for one that is being sent."""
        key = message.session_key, message.in_reply_to
        preview = self._previews.get(key)
        if preview is None or (preview.message and preview.message.chat != message.chat):
            return
        preview.is_over = True
        preview.changed.set()
        if questions.CALL in message.metadata or message.id == outbound.reply_id(message.in_reply_to):
            del self._previews[key]  # the turn is over, or will continue with a new preview
        try:
            async with asyncio.timeout(_SETTLE_TIMEOUT_S), preview.showing:
                pass
        except TimeoutError:
            _log.debug("A preview for %s:%s is still being sent", message.channel, message.chat)

    def _hear(self, event: TurnEvent) -> None:
        key = event.session_key, event.message_id
        preview = self._previews.get(key)
        if preview is None and self._tasks and isinstance(event.event, LlmStart):
            preview = self._previews[key] = _Preview(*key)
            self._tasks.create_task(self._follow(preview))
        if preview:
            preview.hear(event)

    async def _follow(self, preview: _Preview) -> None:
        """Show a turn's reply until the turn is over."""
        find = partial(ledger.running, session_key=preview.key[0], message_id=preview.key[1])
        shown = ""
        try:
            while found := await self._outbox.database.find(find):
                if preview.message is None:
                    preview.message, preview.draft = found
                    by_person = ledger.ORIGIN not in preview.message.metadata
                    is_sent = ReplyOptions.of(preview.message).send_response
                    if not (by_person and is_sent and self.is_live(preview.message.channel)):
                        return
                channel = self._channels[preview.message.channel]
                while await _wait_for_change(preview):
                    if self._previews.get(preview.key) is not preview:
                        return
                    text = _fitting_beginning(preview.text, channel)
                    if text and text != shown and not preview.is_over:
                        await self._show(preview, preview.message, text)
                        shown = text
                        await self._clock.sleep(channel.limits.live_interval)
        finally:
            if self._previews.get(preview.key) is preview:
                del self._previews[preview.key]

    async def _show(self, preview: _Preview, message: InboundMessage, text: str) -> None:
        channel: PreviewingChannel = self._channels[message.channel]  # pyrefly: ignore[bad-assignment]  # it is live
        async with preview.showing:
            if preview.is_over:
                return
            try:
                draft = await channel.show(message.chat, preview.draft, text + PREVIEW_SUFFIX)
            except RateLimited as error:
                preview.is_over = True
                _log.debug("No more previews of this reply to %s:%s. %s", message.channel, message.chat, error)
                return
            except Exception as error:  # noqa: BLE001 (the boundary to a channel: previews may be lost)
                _log.debug("A preview for %s:%s is lost: %r", message.channel, message.chat, error)
                return
            if draft != preview.draft and channel.limits.live in {"edit", "stream"}:
                keep = partial(outbound.keep_preview, message=message, native_id=draft)
                if await self._outbox.database.persist(keep):
                    self._outbox.added(message)
            preview.draft = draft


async def _wait_for_change(preview: _Preview) -> bool:
    """Wait for a change; False after `_CHECK_INTERVAL_S` without one."""
    try:
        await asyncio.wait_for(preview.changed.wait(), _CHECK_INTERVAL_S)
    except TimeoutError:
        return False
    preview.changed.clear()
    return True


def _fitting_beginning(text: str, channel: Channel) -> str:
    """As much of the text as fits into a preview."""
    limits = channel.limits
    room = replace(limits, length=max(limits.length - limits.measure(PREVIEW_SUFFIX), 1)) if limits.length else limits
    return next(split_text(text, room), "").rstrip()
