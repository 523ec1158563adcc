"""Answers streamed as server-sent events."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
from aiohttp import web

from denizen.events import Withdrawn
from denizen.worlds.chat.http.conversation import AnswerPieces, FinalAnswer, Thought
from denizen.worlds.chat.http.requests import GATEWAY, Refused, failure

WITHDRAWN = "The answer broke off and the agent started it again. Repeat the request, or ask without `stream`."

KEEPALIVE_S = 15.0
"""Seconds of silence before a comment is sent, so that proxies keep the connection."""


@asynccontextmanager
async def event_stream(request: web.Request, pieces: AnswerPieces) -> AsyncGenerator["SseResponse"]:
    """A stream of `pieces`. Failures before the first one become an error response, later ones an event."""
    stream = SseResponse(request, pieces)
    comments = asyncio.create_task(stream.fill_silence())
    try:
        await stream.begin()
        try:
            yield stream
        except ConnectionError:
            raise  # the client has left
        except Exception as error:  # noqa: BLE001 (the boundary to a client: it can't be given another response)
            status, why = failure(request, error)
            await stream.send({"error": {"message": why, "code": status}}, "error")
    finally:
        comments.cancel()
        with suppress(asyncio.CancelledError, ConnectionError):
            await comments
        await pieces.aclose()


class SseResponse:
    """A response of server-sent events, and the `pieces` to put in it."""

    def __init__(self, request: web.Request, pieces: AnswerPieces) -> None:
        self.response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        )
        self._request = request
        self._source = pieces
        self._first: str | Thought | Withdrawn | FinalAnswer | Exception | None = None
        self._written = 0

    async def begin(self) -> None:
        """Wait for the first piece, or for its failure if a comment has begun the response already."""
        try:
            self._first = await anext(self._source)
        except Exception as error:
            if not self.response.prepared:
                raise
            self._first = error
        await self.response.prepare(self._request)

    async def fill_silence(self) -> None:
        """Send a comment whenever nothing was sent for a while, also before the first piece, until cancelled."""
        clock = self._request.app[GATEWAY].agent.record.clock
        while True:
            before = self._written
            await clock.sleep(KEEPALIVE_S)
            if self._written == before:
                await self.response.prepare(self._request)
                await self.write(b": no news yet\n\n")

    async def pieces(self) -> AsyncGenerator[str | Thought | FinalAnswer]:
        """Thoughts and text as they arrive, and finally the whole answer. Raises HTTPException for a retraction."""
        piece = self._first
        while piece is not None:
            if isinstance(piece, Withdrawn):
                raise Refused(502, WITHDRAWN)
            if isinstance(piece, Exception):
                raise piece
            yield piece
            piece = await anext(self._source, None)

    async def send(self, data: dict[str, Any], event: str = "") -> None:
        """Send an event."""
        name = f"event: {event}\n".encode() if event else b""
        await self.write(name + b"data: " + msgspec.json.encode(data) + b"\n\n")

    async def write(self, data: bytes) -> None:
        """Send these bytes."""
        self._written += len(data)
        await self.response.write(data)
