"""Time, passed in: what the engine reads and waits on, so that a test drives a day in milliseconds."""

import asyncio
import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, runtime_checkable


class Clock(Protocol):
    """The time of day, a stopwatch, and a way to wait."""

    def now(self) -> datetime:
        """The time of day, aware, in UTC."""

    def monotonic(self) -> float:
        """Seconds of a stopwatch that never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The machine's clock: all of them are equal."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@runtime_checkable
class SteppedClock(Protocol):
    """A clock on which sleeping makes time pass, so that a time-out must not sleep on it."""

    async def wait_until(self, at: float) -> None:
        """Return once the stopwatch shows `at`."""


async def wait_until(clock: Clock, at: float) -> None:
    """Return once the clock's stopwatch shows `at`."""
    if isinstance(clock, SteppedClock):
        await clock.wait_until(at)
    while (left := at - clock.monotonic()) > 0:
        await clock.sleep(left)


@dataclass(frozen=True, slots=True)
class BackOff:
    """How long to wait after failures: `first_s`, doubling with each in a row up to `max_s`.

    Up to the share `jitter` of it is added at random, so that processes that failed together don't try together again.
    """

    first_s: float
    max_s: float
    jitter: float = 0.0

    def after(self, failures: int) -> float:
        """Seconds to wait after that many failures in a row; 0 after none."""
        if not failures:
            return 0.0
        wait = min(self.first_s * 2 ** min(failures - 1, 64), self.max_s)
        return wait * (1 + self.jitter * random.random())  # noqa: S311 - no secret
