"""Who may write to the agent: allow-lists, pairing, and which group messages are answered."""

import logging
from functools import partial

from denizen.config import Config
from denizen.ports import ChannelSettings, InboundMessage, OutboundMessage
from denizen.runtime.clock import Clock
from denizen.text.plural import counted
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.ledger import outbound, pairings, questions
from denizen.worlds.chat.ledger.pairings import CODE_LIFETIME_S, Pairing
from denizen.worlds.chat.turns.people import People, sender_of

_log = logging.getLogger(__name__)
_DENIES_EVERYONE = ChannelSettings()
"""Used for a channel without settings: nobody is allowed."""
_UNPROVEN = (
    "I can't answer: anybody can take your name here, so I can't tell that it's you. Log in to an account that this "
    "network checks, or write to me directly instead of through a room. Then write again."
)


class SenderAccess:
    """Decides which messages are admitted, and manages pairings. `POLLED` channels need the token: all are admitted."""

    def __init__(self, config: Config, people: People, outbox: Outbox, clock: Clock) -> None:
        self._settings = config.channels
        self.people = people
        self._outbox = outbox
        self._clock = clock
        self._explained = set[str]()

    async def admits(self, message: InboundMessage) -> bool:
        """Whether a message may reach a command or a model. Raises LedgerError.

        Unknown senders in direct chats get a pairing code, once until it expires. A sender whom the service doesn't
        vouch for isn't admitted, whatever the settings and pairings say about that name.
        """
        if message.channel in outbound.POLLED:
            return True
        if message.is_bot or not self._is_for_agent(message):
            return False
        is_known = await self._may_speak(message)
        if message.vouched_for == "nothing":
            await self._explain_once(message, is_known=is_known)
        elif not is_known and not message.is_group:
            await self._send_pairing_code(message)
        return is_known and message.vouched_for != "nothing"

    async def pairings(self) -> list[Pairing]:
        """Paired and waiting senders. Raises LedgerError."""
        return await self._outbox.database.read(partial(pairings.pairings, now=self._now()))

    async def approve(self, code: str) -> Pairing | None:
        """Approve the sender with this code, and greet them; None if the code isn't open. Raises LedgerError."""
        paired = await self._outbox.database.run(partial(pairings.approve, code=code, now=self._now()))
        if paired:
            self._outbox.added(paired)
        return paired

    async def revoke(self, who: str) -> bool:
        """Remove a pairing (`channel:sender`); False if there is none. Raises LedgerError."""
        return await self._outbox.database.run(partial(pairings.revoke, who=who))

    async def pair_command(self, words: str) -> str:
        """The reply to an owner's `/pair`."""
        if words:
            paired = await self.approve(words)
            return f"{paired.channel}:{paired.sender} may speak now." if paired else no_open_code_error(words)
        waiting = [each for each in await self.pairings() if not each.approved_at]
        if not waiting:
            return "Nobody is waiting to be paired."
        lines = [f"{each.code}: {each.channel}:{each.sender}" for each in waiting]
        return "\n".join([f"{counted(len(waiting), 'sender')} waiting; /pair CODE approves:", *lines])

    def _is_for_agent(self, message: InboundMessage) -> bool:
        """Whether messages like this are answered in its chat, regardless of the sender."""
        if not message.is_group:
            return True
        groups = self._settings_of(message.channel).groups
        # an answer with the question's word needs no mention
        is_addressed = message.is_addressed or bool(questions.word_in(message.content))
        return groups == "all" or (groups == "addressed" and is_addressed)

    async def _may_speak(self, message: InboundMessage) -> bool:
        if self.people.may_speak(message) or message.sender in self._settings_of(message.channel).allow:
            return True
        is_paired = partial(pairings.is_paired, channel=message.channel, sender=message.sender)
        return await self._outbox.database.read(is_paired)

    async def _send_pairing_code(self, message: InboundMessage) -> None:
        """Send a code, unless the sender has one or too many are open. It reads first, so strangers cause no writes."""
        database, now = self._outbox.database, self._now()
        may_request = partial(pairings.may_request_code, channel=message.channel, sender=message.sender, now=now)
        request = partial(pairings.request_code, message=message, now=now)
        if await database.read(may_request) and await database.run(request):
            self._outbox.added(message)

    async def _explain_once(self, message: InboundMessage, *, is_known: bool) -> None:
        """Explain why the sender isn't admitted: once per known name, and to one stranger an hour in direct chats."""
        name = sender_of(message) if is_known else f"{message.channel} {self._now() // CODE_LIFETIME_S:.0f}"
        if name not in self._explained and (is_known or not message.is_group):
            self._explained.add(name)
            if is_known:
                _log.warning("%s isn't answered: anybody can take that name. Allow what the service checks.", name)
            to = (message.channel, message.chat, _UNPROVEN, message.session_key)
            await self._outbox.put(OutboundMessage(*to, id=f"unproven:{name}"))

    def _settings_of(self, channel: str) -> ChannelSettings:
        found = self._settings.get(channel)
        return found if isinstance(found, ChannelSettings) else _DENIES_EVERYONE

    def _now(self) -> float:
        return self._clock.now().timestamp()


def no_open_code_error(code: str) -> str:
    """The error for a code that can't be approved."""
    return f"Pairing code {code} isn't open: mistyped, used, or over an hour old. The next message gets a new code."


def not_paired_error(who: str) -> str:
    """The error for a sender who can't be revoked."""
    return f"{who} isn't paired. The configuration may allow them: `allow` of the channel, [people], gateway.owner."
