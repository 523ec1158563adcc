"""Work that is not left half done when it is cancelled."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


async def to_its_end(work: Coroutine[Any, Any, _Result], stop: threading.Event | None = None) -> _Result:
    """Do it, all of it when cancelled, too; the cancellation goes on behind it. Raises what the work raises.

    Long work looks at `stop`, which is set when it is cancelled, and ends sooner.
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
