"""File work beside the event loop."""

import asyncio
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(stop: threading.Event | None, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `work`, called in a thread.

    When the task is cancelled, `stop` is set, which long work must look at, and the work's end is waited for: what it
    writes is then all there or not at all.
    """
    task = asyncio.create_task(asyncio.to_thread(work, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if stop:
            stop.set()
        await asyncio.wait([task])
        task.cancelled() or task.exception()  # what it raised concerns nobody any more
        raise
