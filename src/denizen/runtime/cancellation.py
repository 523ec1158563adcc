"""Work that a cancellation doesn't leave half done, and work that ends with other work."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
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


@asynccontextmanager
async def first_completed(*works: Coroutine[Any, Any, Any]) -> AsyncGenerator[Sequence[asyncio.Task[Any]]]:
    """Run these until one of them is over: the block gets the tasks, and the others are cancelled at its end."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def run_until_first(*works: Coroutine[Any, Any, Any]) -> None:
    """Run these until one ends, then cancel the others. Raises the error of the first."""
    async with first_completed(*works) as tasks:
        for task in tasks:
            if task.done():
                task.result()
