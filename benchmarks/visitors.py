"""What runs against a gateway: people in many chats, each of whose messages wants one reply, and in order.

Only the standard library is used, since this runs in a peer's environment as well.
"""

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from itertools import count as counter
from random import Random
from typing import Protocol

from benchmarks.driver import Command, Figures
from benchmarks.scene import TICKET, WrongAnswer

AT_ONCE = 64
"""Messages that are handed in at once, and chats that wait for their replies at once."""


class Gate(Protocol):
    """A gateway as people in chats see it, and its process."""

    async def post(self, chat: str, text: str) -> None:
        """Hand a message in; on return it is accepted."""
        ...

    async def reply(self, chat: str) -> str | None:
        """The next reply in a chat; None where no more comes."""
        ...

    def cpu(self) -> float:
        """Seconds of CPU that its process has used."""
        ...

    def resident(self) -> int:
        """Bytes of its process in memory now."""
        ...


class Visitors:
    """Puts messages through a gateway, and checks what comes back. Every message has a ticket, which its reply says."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._chats, self._tickets = counter(1), counter(1)

    def commands(self) -> Mapping[str, Command]:
        return {command.__name__: command for command in (self.idle, self.pace, self.latency, self.arrivals)}

    async def idle(self) -> Figures:
        """MB of the process while nothing happens."""
        return {"mb": self._gate.resident() / 2**20}

    async def pace(self, chats: int, count: int) -> Figures:
        """`chats` new chats at once, `count` messages in each, the next when the reply to the last has come."""
        begun, cpu = time.perf_counter(), self._gate.cpu()
        await asyncio.gather(*(self._talk(chat, count) for chat in self._new_chats(chats)))
        return self._figures(chats * count, begun, cpu, time.perf_counter())

    async def _talk(self, chat: str, count: int) -> None:
        for _ in range(count):
            await self._gate.post(chat, ticket := self._ticket())
            self._check(ticket, await self._gate.reply(chat))

    async def latency(self, chats: int, count: int, rate: float) -> Figures:
        """When each of `count` messages was handed in, by its ticket: `rate` a second, at random times.

        They go to new chats in turn, but none to a chat that waits for a reply.
        """
        random, sent, free = Random(1), dict[str, float](), deque(self._new_chats(chats))

        async def post(chat: str) -> None:
            ticket = self._ticket()
            sent[ticket.removeprefix(TICKET)] = time.monotonic()
            await self._gate.post(chat, ticket)
            self._check(ticket, await self._gate.reply(chat))
            free.append(chat)

        at = time.monotonic()
        async with asyncio.TaskGroup() as posts:
            for _ in range(count):
                at += random.expovariate(rate)
                await asyncio.sleep(at - time.monotonic())
                posts.create_task(post(free.popleft() if free else self._new_chats(1)[0]))
        return {"sent": sent}

    async def arrivals(self, chats: int, count: int) -> Figures:
        """`count` messages in each of so many new chats: they arrive in random order, but each chat's in its order."""
        before, names = self._gate.resident(), self._new_chats(chats)
        tickets = {chat: [self._ticket() for _ in range(count)] for chat in names}
        order = names * count
        Random(1).shuffle(order)
        arriving, reading, replies = iter(order), iter(names), dict[str, list[str]]()
        unsent, in_order = {chat: iter(tickets[chat]) for chat in names}, {chat: asyncio.Lock() for chat in names}
        begun, cpu = time.perf_counter(), self._gate.cpu()
        last = begun

        async def post() -> None:
            for chat in arriving:
                async with in_order[chat]:
                    await self._gate.post(chat, next(unsent[chat]))

        async def read() -> None:
            nonlocal last
            for chat in reading:
                replies[chat] = []
                while len(replies[chat]) < count and (reply := await self._gate.reply(chat)) is not None:
                    replies[chat].append(reply)
                    last = time.perf_counter()

        await asyncio.gather(*(post() for _ in range(AT_ONCE)))
        await asyncio.gather(*(read() for _ in range(AT_ONCE)))
        if not (answered := sum(map(len, replies.values()))):
            raise WrongAnswer("no message was answered")
        figures = self._figures(answered, begun, cpu, last)
        await asyncio.sleep(1)
        return {
            **figures,
            "replies": answered,
            "in_order": sum(replies[chat] == tickets[chat] for chat in names),
            "mb_before": before / 2**20,
            "mb_after": self._gate.resident() / 2**20,
        }

    def _new_chats(self, count: int) -> list[str]:
        return [f"chat-{next(self._chats)}" for _ in range(count)]

    def _ticket(self) -> str:
        return f"{TICKET}{next(self._tickets):08}"

    def _check(self, ticket: str, reply: str | None) -> None:
        if reply != ticket:
            raise WrongAnswer(f"{ticket} was answered with {reply!r}")

    def _figures(self, turns: int, begun: float, cpu: float, ended: float) -> dict[str, float]:
        return {"turns_per_second": turns / (ended - begun), "cpu_ms": (self._gate.cpu() - cpu) * 1e3 / turns}
