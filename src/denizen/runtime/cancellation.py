"""Work that a cancellation doesn't leave half done."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def run_to_completion(work: Coroutine[Any, Any, T], stop: threading.Event | None = None) -> T:
    """Do all of it even if cancelled meanwhile; the cancellation is raised afterwards. Raises what the work raises.

    Long work can end early by watching `stop`, which is set on cancellation.
    """
    task, stopped = asyncio.create_task(work), None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as why:
            stopped = why
            if stop:
                stop.set()
    result = task.result()
    if stopped:
        raise stopped
    return result


async def run_in_thread(stop: threading.Event | None, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `work` in a thread, to completion: what it writes is then all there or not at all."""
    return await run_to_completion(asyncio.to_thread(work, *args, **kwargs), stop)
