"""File work beside the event loop."""

import asyncio
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from denizen.unbroken import to_its_end

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(stop: threading.Event | None, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of `work`, called in a thread, and of all of it: what it writes is then all there or not at all.

    Long work looks at `stop`, which is set when the task is cancelled.
    """
    return await to_its_end(asyncio.to_thread(work, *args, **kwargs), stop)
