"""Waits after failures."""

from denizen.runtime.clock import BackOff


def test_a_wait_doubles_with_each_failure_up_to_a_limit() -> None:
    waits = [BackOff(5.0, 20.0).after(failures) for failures in (0, 1, 2, 3, 4, 10_000)]
    assert waits == [0.0, 5.0, 10.0, 20.0, 20.0, 20.0]


def test_jitter_spreads_waits_by_its_share_at_most() -> None:
    waits = {BackOff(10.0, 60.0, jitter=0.2).after(1) for _ in range(50)}
    assert len(waits) > 1
    assert all(10.0 <= wait < 12.0 for wait in waits)
