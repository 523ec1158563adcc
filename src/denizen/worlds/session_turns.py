"""The turns of a session in this process, one after the other, however many a program asks for at once."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path

from denizen.errors import SessionError

_Line = tuple[Path, str]


class _Waiting:
    """A turn that waits for those before it: event loops of several threads may wait for one session."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.turn = asyncio.Event()

    def go(self) -> None:
        """It is its turn."""
        self._loop.call_soon_threadsafe(self.turn.set)


_lock = threading.Lock()
_lines: dict[_Line, deque[_Waiting]] = {}
_running: ContextVar[frozenset[_Waiting]] = ContextVar("running", default=frozenset())


@asynccontextmanager
async def session_turn(home: Path, key: str, *, wait: bool) -> AsyncGenerator[None]:
    """Hold session `key` for one turn, after those that asked for it before in this process.

    Raises SessionError where there are some and it may not `wait`, or would wait for the turn that it is part of.
    """
    place, waiting = (home, key), _Waiting()
    with _lock:
        line = _lines.setdefault(place, deque())
        if line and line[0] in _running.get():
            raise SessionError(f"Session {key} is in the middle of the turn that asks this. Use another session.")
        if line and not wait:
            raise SessionError(f'Session {key} is busy with another message (agent.when_busy = "fail").')
        waits = bool(line)
        line.append(waiting)
    try:
        if waits:
            await waiting.turn.wait()
        outer = _running.set(_running.get() | {waiting})
        try:
            yield
        finally:
            _running.reset(outer)
    finally:
        with _lock:
            first = line[0] is waiting
            line.remove(waiting)
            if not line:
                del _lines[place]
            elif first:
                line[0].go()
