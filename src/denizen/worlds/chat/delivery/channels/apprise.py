"""Apprise: sends notifications to phones, desktops and more than a hundred services."""

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
    """URLs by target name, preferably as references: `{ phone = "${PHONE_URL}" }`. The name is the chat."""


class AppriseChannel:
    """One chat for each target."""

    limits = ChannelLimits(markup="Markdown")

    def __init__(self, settings: AppriseSettings, home: ChannelHome) -> None:
        if find_spec("apprise") is None:  # imported later, in a thread, because that takes seconds
            raise ModuleNotFoundError("No module named 'apprise'")
        self.name = home.name
        self._clock: Clock = home.clock
        self._targets = settings.targets

    async def receive(self, accept: Accept) -> None:
        await asyncio.Event().wait()

    async def send(self, message: OutboundMessage) -> Sent:
        if message.may_be_sent:
            return Sent("unknown", "Apprise can't tell whether an earlier attempt was sent.")
        url = self._targets.get(message.chat)
        if url is None:
            known = ", ".join(self._targets) or "none"
            return Sent("failed", f"{self.name} has no target {message.chat!r}; available: {known}.")
        if message.media:
            return Sent("failed", "Notifications can't have files.")
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
            return Sent("failed", f"Apprise doesn't support the URL of the target {message.chat}.")
        if result:
            return Sent()
        reasons = " ".join(entry.message for entry in result.logs())
        return Sent("failed", reasons or f"The target {message.chat} rejected the notification.")


def _notify(url: str, text: str) -> "AppriseResult | None":
    from apprise import Apprise

    service = Apprise()
    return service.notify(text, body_format="markdown") if service.add(url) else None


async def check(settings: AppriseSettings) -> str:
    """Check the URLs without sending anything; return the targets' names. Raises ConfigError for an unsupported URL."""

    def unknown() -> list[str]:
        from apprise import Apprise

        return [name for name, url in settings.targets.items() if not Apprise().add(url)]

    if names := await asyncio.to_thread(unknown):
        raise ConfigError(
            f"Apprise doesn't support the URL of {', '.join(names)}. Formats: https://github.com/caronc/apprise/wiki."
        )
    return f"targets {', '.join(settings.targets)}"


def _account(_: AppriseSettings) -> str:
    return ""  # several gateways may use the same target


KIND = ChannelKind(
    settings=AppriseSettings,
    connect=AppriseChannel,
    check=check,
    account=_account,
    steps="Look up the URL format of your service: https://github.com/caronc/apprise/wiki",
)
