"""A clock that a test moves."""

import asyncio
from datetime import UTC, datetime, timedelta


class FakeClock:
    """Stands still until something sleeps on it; then that much time has passed, at once. `slept` lists the waits."""

    def __init__(self, now: datetime | None = None) -> None:
        self._began = now or datetime(2026, 1, 1, 12, tzinfo=UTC)
        self._passed = 0.0
        self.slept: list[float] = []
        self._waiting: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """The time of day."""
        return self._began + timedelta(seconds=self._passed)

    def monotonic(self) -> float:
        """Seconds since it was made."""
        return self._passed

    async def sleep(self, seconds: float) -> None:
        """Let that much time pass."""
        self.slept.append(seconds)
        self._passed += max(seconds, 0.0)
        for at, waiter in self._waiting:
            if at <= self._passed and not waiter.done():
                waiter.set_result(None)
        await asyncio.sleep(0)

    async def wait_until(self, at: float) -> None:
        """Return once sleeps have let that much time pass."""
        if at > self._passed:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append((at, waiter))
            try:
                await waiter
            finally:
                self._waiting.remove((at, waiter))
