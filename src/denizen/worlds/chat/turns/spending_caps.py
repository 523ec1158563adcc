"""Daily spending limits for senders and groups."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from denizen.engine import AgentRecord
from denizen.errors import DenizenError
from denizen.ports import Budget, InboundMessage, OutboundMessage
from denizen.runtime.clock import Clock
from denizen.sessions.spend import SerialExecutor, Sums
from denizen.worlds.chat.ledger import ledger, outbound
from denizen.worlds.chat.settings import GatewaySettings
from denizen.worlds.chat.turns.people import People, sender_of


class SpendingCap(NamedTuple):
    """A limit in US dollars, the name of the sum that it limits, its subject in words, and its setting."""

    sum: str
    limit: float
    subject: str
    setting: str


class SpendingCaps:
    """Counts the cost of turns per sender and group, in sums that all processes share.

    Owners, `POLLED` channels, cron jobs and the heartbeat have no caps. As with budgets, calls in flight can exceed it.
    """

    def __init__(self, settings: GatewaySettings, people: People, sums: Sums, clock: Clock) -> None:
        self._settings = settings
        self._people = people
        self._sums = sums
        self._clock = clock
        self._executor = SerialExecutor(sums)

    async def refusal(self, message: InboundMessage) -> OutboundMessage | None:
        """The reply if a cap forbids a turn for the message; None if the turn may start.

        Its id depends only on the sum and the chat, so each chat gets it once a day.
        """
        for cap in self._caps(message):
            if why := await self.reached_cap([cap]):
                reply = outbound.reply_to(message, f"{why} I can answer again tomorrow (UTC).")
                return replace(reply, id=f"spent:{cap.sum}:{message.chat}")
        return None

    def with_caps(self, record: AgentRecord, message: InboundMessage) -> AgentRecord:
        """The agent for the message's turn, with a budget that counts calls against the caps."""
        caps = self._caps(message)
        return dataclasses.replace(record, budget=_CappedBudget(record.budget, self, caps)) if caps else record

    async def reached_cap(self, caps: Sequence[SpendingCap]) -> str:
        """A sentence about the cap that is reached; empty if none is. Raises DenizenError if the sums can't be read."""
        sums = await self._executor.run(self._sums.read, [cap.sum for cap in caps])
        for cap in caps:
            if (spent := sums.get(cap.sum, 0.0)) >= cap.limit:
                return f"Today's budget of {cap.subject} is spent: ${spent:.4f} of ${cap.limit:g} ({cap.setting})."
        return ""

    async def add(self, caps: Sequence[SpendingCap], usd: float) -> None:
        """Count the cost of a call. Raises DenizenError if it can't be written."""
        await self._executor.run(self._sums.add, {cap.sum: usd for cap in caps})

    def _caps(self, message: InboundMessage) -> list[SpendingCap]:
        if message.channel in outbound.POLLED or ledger.ORIGIN in message.metadata or self._people.is_owner(message):
            return []
        day, sender = self._clock.now().date().isoformat(), self._people.identity(sender_of(message))
        caps = list[SpendingCap]()
        if (limit := self._settings.sender_day_usd) is not None:
            caps.append(SpendingCap(f"{day} sender {sender}", limit, "this sender", "gateway.sender_day_usd"))
        if message.is_group and (limit := self._settings.group_day_usd) is not None:
            room = message.room or (message.chat.removesuffix(f"/{message.thread}") if message.thread else message.chat)
            name = f"{day} group {message.channel}:{room}"
            caps.append(SpendingCap(name, limit, "this group", "gateway.group_day_usd"))
        return caps


class _CappedBudget:
    """A budget that also counts against caps."""

    def __init__(self, budget: Budget, counted: SpendingCaps, caps: Sequence[SpendingCap]) -> None:
        self._budget = budget
        self._counted = counted
        self._caps = caps

    async def check(self, session_key: str, turn_usd: float) -> str:
        return await self._counted.reached_cap(self._caps) or await self._budget.check(session_key, turn_usd)

    async def charge(self, session_key: str, cost: float | None, model: str) -> str:
        try:
            if cost:
                await self._counted.add(self._caps, cost)
        except DenizenError as error:  # keep the answer: it is already paid for
            return await self._budget.charge(session_key, cost, model) or str(error)
        return await self._budget.charge(session_key, cost, model)

    async def close(self) -> None:
        await self._budget.close()
