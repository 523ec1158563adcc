"""The turns of a session in this process, one after the other, however many a program asks for at once."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path

from denizen.errors import SessionError


class _Waiting:
    """A turn that waits for earlier ones, which may be in the event loop of another thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.may_start = asyncio.Event()

    def start(self) -> None:
        self._loop.call_soon_threadsafe(self.may_start.set)


_lock = threading.Lock()
_queues: dict[tuple[Path, str], deque[_Waiting]] = {}
_running: ContextVar[frozenset[_Waiting]] = ContextVar("running", default=frozenset())


@asynccontextmanager
async def session_turn(home: Path, key: str, *, wait: bool) -> AsyncGenerator[None]:
    """Hold session `key` for one turn, after the turns that asked for it earlier in this process.

    Raises SessionError if there are such turns and it may not `wait`, or would wait for the turn it is part of.
    """
    session, waiting = (home, key), _Waiting()
    with _lock:
        queue = _queues.setdefault(session, deque())
        if queue and queue[0] in _running.get():
            raise SessionError(f"Session {key} is in the middle of the turn that asks this. Use another session.")
        if queue and not wait:
            raise SessionError(f'Session {key} is busy with another message (agent.when_busy = "fail").')
        waits = bool(queue)
        queue.append(waiting)
    try:
        if waits:
            await waiting.may_start.wait()
        outer = _running.set(_running.get() | {waiting})
        try:
            yield
        finally:
            _running.reset(outer)
    finally:
        with _lock:
            first = queue[0] is waiting
            queue.remove(waiting)
            if not queue:
                del _queues[session]
            elif first:
                queue[0].start()
