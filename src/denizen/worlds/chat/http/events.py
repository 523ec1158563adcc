"""The live events of all turns, over a WebSocket that can be resumed."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import islice

import msgspec
from aiohttp import web

from denizen.events import RunEvent
from denizen.worlds.chat.http.requests import GATEWAY, Refused, read_number

MAX_LOG_BYTES = 4_000_000
"""Bytes of events that are kept for readers that reconnect."""
_ENCODER = msgspec.json.Encoder(enc_hook=repr)


class Changed(msgspec.Struct, frozen=True, tag_field="type", tag="changed"):
    """The messages or questions of the session changed: read them again."""


class EventFrame(msgspec.Struct, frozen=True):
    """An event of a session's turn, with its number."""

    seq: int
    session_key: str
    event: RunEvent | Changed


class EventGap(msgspec.Struct, frozen=True):
    """Events after number `after` are gone; the first one that follows is number `next`."""

    after: int
    next: int


class EventGapFrame(msgspec.Struct, frozen=True):
    """The first message, if some events are gone."""

    gap: EventGap


class EventReader:
    """A connection that has read up to number `after`; `cut` ends it."""

    def __init__(self, after: int, cut: Callable[[], None]) -> None:
        self.after = after
        self.cut = cut


class EventLog:
    """The latest events, at most `room` bytes of them, numbered in sequence.

    The first number follows `start`, a time in microseconds, so that no number returns after a restart. A reader that
    is so slow that unread events are dropped is cut off.
    """

    def __init__(self, start: int, room: int = MAX_LOG_BYTES) -> None:
        self.last = start
        self.readers: set[EventReader] = set()
        self._room = room
        self._size = 0
        self._kept = deque[bytes]()
        self._news = asyncio.Event()

    @property
    def before(self) -> int:
        """The number before the oldest event."""
        return self.last - len(self._kept)

    def changed(self, session_key: str) -> None:
        """Tell the readers that a session's messages or questions changed."""
        self.add(session_key, Changed())

    def add(self, session_key: str, event: RunEvent | Changed) -> None:
        """Keep an event, and tell the readers."""
        self.last += 1
        shown = {"seq": self.last, "session_key": session_key}
        try:
            line = _ENCODER.encode({**shown, "event": event})
        except (TypeError, ValueError, RecursionError):  # half a character, a number that JSON hasn't
            line = _ENCODER.encode({**shown, "event": {"type": event.__struct_config__.tag}})
        self._kept.append(line)
        self._size += len(line)
        while self._size > self._room:
            self._size -= len(self._kept.popleft())
        for reader in [each for each in self.readers if each.after < self.before]:
            self.readers.discard(reader)
            reader.cut()
        self._news.set()

    async def after(self, number: int, most: int = 100) -> list[bytes]:
        """The events after that number, once there are any."""
        while number >= self.last:
            self._news.clear()
            await self._news.wait()
        start = max(number - self.before, 0)
        return [*islice(self._kept, start, start + most)]


EVENTS = web.AppKey("events", EventLog)


async def get_events(request: web.Request) -> web.WebSocketResponse:
    """The events of all turns, each `{"seq", "session_key", "event"}`, after a number or from the oldest kept.

    If events after that number are gone, the first message is `{"gap": {"after", "next"}}`.
    """
    log = request.app[EVENTS]
    after = int(read_number(request, "after", int, 2**53))
    socket = web.WebSocketResponse(heartbeat=30.0, max_msg_size=1000)
    if not socket.can_prepare(request):
        raise Refused(426, "This route is a WebSocket.")
    async with request.app[GATEWAY].listeners.listening():
        await socket.prepare(request)
        begin = after if log.before <= after <= log.last else log.before
        if after and begin != after:
            gap = EventGapFrame(EventGap(after, begin + 1))
            await socket.send_str(_ENCODER.encode(gap).decode())
        reader = EventReader(begin, lambda: request.transport.abort() if request.transport else None)
        log.readers.add(reader)
        sending = asyncio.create_task(_send(socket, log, reader))
        try:
            async for _ in socket:  # what a client says isn't heard; this ends with the connection
                pass
        finally:
            log.readers.discard(reader)
            sending.cancel()
    return socket


async def _send(socket: web.WebSocketResponse, log: EventLog, reader: EventReader) -> None:
    with suppress(ConnectionError):  # they left
        while True:
            for line in await log.after(reader.after):
                await socket.send_str(line.decode())
                reader.after += 1


ROUTES = [web.get("/api/events", get_events)]
