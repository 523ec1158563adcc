"""The fake clock moves when something sleeps on it."""

import asyncio
from datetime import UTC, datetime, timedelta

from denizen.runtime.clock import wait_until
from denizen.testing import FakeClock


async def test_sleeping_passes_time_at_once() -> None:
    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
    await clock.sleep(3600)
    await clock.sleep(0.5)
    assert clock.now() == datetime(2026, 1, 1, 1, tzinfo=UTC) + timedelta(seconds=0.5)
    assert clock.monotonic() == 3600.5
    assert clock.slept == [3600, 0.5]


async def test_others_run_meanwhile() -> None:
    clock, order = FakeClock(), list[str]()

    async def sleeper(name: str) -> None:
        order.append(f"{name} sleeps")
        await clock.sleep(1)
        order.append(f"{name} wakes")

    await asyncio.gather(sleeper("a"), sleeper("b"))
    assert order == ["a sleeps", "b sleeps", "a wakes", "b wakes"]


async def test_a_time_out_waits_for_the_sleep_that_reaches_it() -> None:
    clock = FakeClock()
    time_out = asyncio.create_task(wait_until(clock, 300.0))
    await clock.sleep(299)
    assert not time_out.done()
    await clock.sleep(1)
    await time_out
    assert clock.slept == [299, 1]


async def test_time_does_not_go_back() -> None:
    clock = FakeClock()
    await clock.sleep(-5)
    assert clock.monotonic() == 0.0
