"""Work that is not left half done when it is cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


async def to_its_end(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Do it, all of it when cancelled, too; the cancellation goes on behind it. Raises what the work raises."""
    task, stopped = asyncio.create_task(work), None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as why:
            stopped = why
    result = task.result()
    if stopped:
        raise stopped
    return result
