"""Apprise: notifications to phones, desktops and some hundred services; it sends only."""

import asyncio
from importlib.util import find_spec
from typing import TYPE_CHECKING

from denizen.errors import ConfigError
from denizen.ports.channel import Accept, ChannelHome, ChannelKind, ChannelLimits, ChannelSettings, Sent
from denizen.ports.queue import OutboundMessage
from denizen.runtime.clock import Clock, wait_until

if TYPE_CHECKING:
    from apprise import AppriseResult

TIMEOUT_S = 60.0


class AppriseSettings(ChannelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[channels.apprise]`."""

    targets: dict[str, str]
    """The URL of each target by its name, which is its chat; best as references: `{ phone = "${PHONE_URL}" }`."""


class AppriseChannel:
    """One chat for each target."""

    limits = ChannelLimits(markup="Markdown")

    def __init__(self, settings: AppriseSettings, home: ChannelHome) -> None:
        if find_spec("apprise") is None:  # imported in a thread at the first message: it takes seconds to load
            raise ModuleNotFoundError("No module named 'apprise'")
        self.name = home.name
        self._clock: Clock = home.clock
        self._targets = settings.targets

    async def receive(self, accept: Accept) -> None:
        await asyncio.Event().wait()

    async def send(self, message: OutboundMessage) -> Sent:
        if message.may_be_sent:
            return Sent("unknown", "Apprise can't look whether a notification was sent.")
        url = self._targets.get(message.chat)
        if url is None:
            known = ", ".join(self._targets) or "none"
            return Sent("failed", f"{self.name} has no target {message.chat!r}; available: {known}.")
        if message.media:
            return Sent("failed", "Notifications take no files.")
        sending = asyncio.create_task(asyncio.to_thread(_notify, url, message.content))
        waiting = asyncio.create_task(wait_until(self._clock, self._clock.monotonic() + TIMEOUT_S))
        try:
            await asyncio.wait({sending, waiting}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done():
                return Sent("unknown", f"The target {message.chat} didn't answer within {TIMEOUT_S:g} s.")
            result = sending.result()
        finally:
            sending.cancel()
            waiting.cancel()
        if result is None:
            return Sent("failed", f"Apprise doesn't know the URL of the target {message.chat}.")
        if result:
            return Sent()
        reasons = " ".join(entry.message for entry in result.logs())
        return Sent("failed", reasons or f"The target {message.chat} didn't take the notification.")


def _notify(url: str, text: str) -> "AppriseResult | None":
    from apprise import Apprise

    service = Apprise()
    return service.notify(text, body_format="markdown") if service.add(url) else None


async def check(settings: AppriseSettings) -> str:
    """The names of the targets; nothing is sent. Raises ConfigError if apprise doesn't know a URL."""

    def unknown() -> list[str]:
        from apprise import Apprise

        return [name for name, url in settings.targets.items() if not Apprise().add(url)]

    if names := await asyncio.to_thread(unknown):
        raise ConfigError(
            f"Apprise doesn't know the URL of {', '.join(names)}. The forms: https://github.com/caronc/apprise/wiki."
        )
    return f"targets {', '.join(settings.targets)}"


def account(settings: AppriseSettings) -> str:
    """None: any number of gateways may notify a target."""
    return ""


KIND = ChannelKind(
    settings=AppriseSettings,
    connect=AppriseChannel,
    check=check,
    account=account,
    steps="Find the form of your service's URL: https://github.com/caronc/apprise/wiki",
)
