"""Alarms: messages to the owner about a failing channel, sent through other channels."""

import asyncio
import logging
from collections.abc import Sequence

from denizen.config.extras import how_to_install
from denizen.errors import DenizenError
from denizen.ports import OutboundMessage
from denizen.runtime.clock import Clock
from denizen.worlds.chat.delivery.outbox import Outbox

_log = logging.getLogger(__name__)


class Alarms:
    """Sends alarms to the owners' chats and to `targets`: chats (`"channel:chat"`) and Apprise URLs."""

    def __init__(self, owners: Sequence[str], targets: Sequence[str], outbox: Outbox, clock: Clock) -> None:
        self._chats = [*owners, *(each for each in targets if "://" not in each)]
        self._urls = [each for each in targets if "://" in each]
        self._outbox = outbox
        self._clock = clock

    async def send(self, channel: str, text: str) -> None:
        """Send an alarm about a channel, but not through that channel."""
        _log.error("%s", text)
        at = f"{self._clock.now():%Y-%m-%dT%H:%M:%SZ}"
        for to in self._chats:
            name, _, chat = to.partition(":")
            if name != channel:
                try:
                    await self._outbox.put(OutboundMessage(name, chat, text, id=f"alarm:{channel}:{at}:{chat}"))
                except DenizenError as error:
                    _log.error("Can't send the alarm to %s: %s", to, error)
        if self._urls:
            try:
                await asyncio.to_thread(self._notify, text)  # apprise takes seconds to load
            except Exception as error:  # noqa: BLE001 (the boundary to apprise: the gateway keeps running)
                _log.error("Can't notify the targets in gateway.alarms: %r", error)

    def _notify(self, text: str) -> None:
        try:
            from apprise import Apprise
        except ModuleNotFoundError:
            _log.error("gateway.alarms needs packages that aren't installed: %s", how_to_install("apprise"))
            return
        service = Apprise()
        if not service.add(self._urls):
            _log.error("gateway.alarms has a URL that apprise doesn't support.")
        if not service.notify(body=text, title="Denizen"):
            _log.error("Some targets in gateway.alarms rejected the alarm.")
