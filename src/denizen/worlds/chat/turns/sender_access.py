"""Who may speak: the allow-list, pairing, and which messages of a group are answered."""

from functools import partial

from denizen.config import Config
from denizen.ports import ChannelSettings, InboundMessage
from denizen.runtime.clock import Clock
from denizen.text.plural import counted
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.ledger import outbound, pairings, questions
from denizen.worlds.chat.ledger.pairings import Pairing
from denizen.worlds.chat.turns.people import People

_CLOSED = ChannelSettings()
"""The settings of a channel without a table: nobody is allowed."""


class SenderAccess:
    """Admits messages, and keeps who was paired. The token admits to `POLLED` channels, so all their messages are."""

    def __init__(self, config: Config, people: People, outbox: Outbox, clock: Clock) -> None:
        self._settings = config.channels
        self.people = people
        self._outbox = outbox
        self._clock = clock

    async def admits(self, message: InboundMessage) -> bool:
        """Whether a message may reach a command or a model. Raises LedgerError.

        An unknown sender of a direct chat gets a pairing code, once until it expires.
        """
        if message.channel in outbound.POLLED:
            return True
        if message.is_bot or not self._is_for_agent(message):
            return False
        if await self._may_speak(message):
            return True
        if not message.is_group:
            await self._ask_to_pair(message)
        return False

    async def pairings(self) -> list[Pairing]:
        """The senders who were paired, and those who wait for it. Raises LedgerError."""
        return await self._outbox.database.read(partial(pairings.pairings, now=self._now()))

    async def approve(self, code: str) -> Pairing | None:
        """Let the sender with this code speak, and greet them; None: no such code is open. Raises LedgerError."""
        paired = await self._outbox.database.run(partial(pairings.approve, code=code, now=self._now()))
        if paired:
            self._outbox.added(paired)
        return paired

    async def revoke(self, who: str) -> bool:
        """Forget a pairing (`channel:sender`); False: there is none. Raises LedgerError."""
        return await self._outbox.database.run(partial(pairings.revoke, who=who))

    async def pair_command(self, words: str) -> str:
        """The reply to an owner's `/pair`."""
        if words:
            paired = await self.approve(words)
            return f"{paired.channel}:{paired.sender} may speak now." if paired else not_open(words)
        waiting = [each for each in await self.pairings() if not each.approved_at]
        if not waiting:
            return "Nobody waits for pairing."
        lines = [f"{each.code}: {each.channel}:{each.sender}" for each in waiting]
        return "\n".join([f"{counted(len(waiting), 'sender')} waiting; /pair CODE approves:", *lines])

    def _is_for_agent(self, message: InboundMessage) -> bool:
        """Whether the message is answered by where it was written, whoever wrote it."""
        if not message.is_group:
            return True
        groups = self._settings_of(message.channel).groups
        # nobody repeats the agent's name in an answer that names the question's word
        is_addressed = message.is_addressed or bool(questions.word_in(message.content))
        return groups == "all" or (groups == "addressed" and is_addressed)

    async def _may_speak(self, message: InboundMessage) -> bool:
        if self.people.may_speak(message) or message.sender in self._settings_of(message.channel).allow:
            return True
        is_paired = partial(pairings.is_paired, channel=message.channel, sender=message.sender)
        return await self._outbox.database.read(is_paired)

    async def _ask_to_pair(self, message: InboundMessage) -> None:
        """Send a code, unless the sender has one or too many are open. Reads first: strangers cost no write."""
        database, now = self._outbox.database, self._now()
        may_ask = partial(pairings.may_ask, channel=message.channel, sender=message.sender, now=now)
        if await database.read(may_ask) and await database.run(partial(pairings.ask, message=message, now=now)):
            self._outbox.added(message)

    def _settings_of(self, channel: str) -> ChannelSettings:
        found = self._settings.get(channel)
        return found if isinstance(found, ChannelSettings) else _CLOSED

    def _now(self) -> float:
        return self._clock.now().timestamp()


def not_open(code: str) -> str:
    """The error for a code that can't be approved."""
    return f"No pairing code {code} is open: mistyped, used, or over an hour old. The next message gets a new one."


def not_paired(who: str) -> str:
    """The error for a sender who can't be revoked."""
    return f"{who} isn't paired. The configuration may allow them: `allow` of the channel, [people], gateway.owner."
