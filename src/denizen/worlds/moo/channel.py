"""The gateway's channel to a text world: running characters page their owner. It only sends."""

import asyncio
from typing import Annotated

import msgspec

from denizen.ports.channel import Accept, ChannelHome, ChannelKind, ChannelLimits, ChannelSettings, Sent
from denizen.ports.queue import OutboundMessage
from denizen.sessions.request_socket import AnswerLost, SessionNotRunning, SessionRequest, send_request, sessions_named
from denizen.worlds.moo.operator_answers import PAGE_RETRY_S

TIMEOUT_S = 120.0


class MooChannelSettings(ChannelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[channels.moo]`."""

    owner: Annotated[str, msgspec.Meta(pattern=r"\S")]
    """The player whom characters page. A character's name is the chat."""


class MooChannel:
    """Sends to a chat by having its character page the owner."""

    limits = ChannelLimits(length=1_000, reconciles=True)

    def __init__(self, settings: MooChannelSettings, home: ChannelHome) -> None:
        self.name = home.name
        self._home = home.folder.parents[1]
        self._owner = settings.owner

    async def receive(self, accept: Accept) -> None:
        await asyncio.Event().wait()

    async def send(self, message: OutboundMessage) -> Sent:
        if message.media:
            return Sent("failed", "Pages can't have files.")
        if self.limits.measure(message.content) > self.limits.length:
            return Sent("failed", f"A page has at most {self.limits.length:,} characters.")
        found = await asyncio.to_thread(sessions_named, self._home, "moo", message.chat)
        if len(found) != 1:
            names = ", ".join(key.account for key in found) or "none"
            return Sent("failed", f"No character, or more than one, is called {message.chat}: {names}.")
        page = SessionRequest(f"{self.name}:{message.id}", message.content, page=self._owner)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return msgspec.json.decode(await send_request(self._home, str(found[0]), page), type=Sent)
        except SessionNotRunning:
            return Sent("later", f"{message.chat} isn't running.", retry_after=PAGE_RETRY_S)
        except AnswerLost:
            return Sent("unknown", f"{message.chat} stopped before it answered.")
        except TimeoutError:
            return Sent("unknown", f"{message.chat} didn't answer within {TIMEOUT_S:g} s.")


async def check(settings: MooChannelSettings) -> str:
    """The owner's name. Whether characters run shows only when sending."""
    return settings.owner


def account(settings: MooChannelSettings) -> str:
    """Empty, because several gateways may page the same player."""
    return ""


KIND = ChannelKind(
    settings=MooChannelSettings,
    connect=MooChannel,
    check=check,
    account=account,
    steps="The owner is your own player in the text world. Running characters page it: denizen moo run DIR",
)
