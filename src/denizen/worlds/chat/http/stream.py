"""An answer that streams as server-sent events."""

from collections.abc import AsyncGenerator, AsyncIterator
from types import TracebackType
from typing import Any

import msgspec
from aiohttp import web

from denizen.events import Withdrawn
from denizen.worlds.chat.http.requests import Refused
from denizen.worlds.chat.http.turns import Pieces, Reply

WITHDRAWN = "The answer broke off, and the agent began it anew. Ask without `stream`, or again."


class EventStream:
    """Server-sent events about `pieces`; what fails before the first is a plain refusal, what fails later an event."""

    def __init__(self, request: web.Request, pieces: Pieces) -> None:
        self.response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        )
        self._request = request
        self._source = pieces
        self._first: str | Withdrawn | Reply | None = None

    async def __aenter__(self) -> "EventStream":
        self._first = await anext(self._source)
        await self.response.prepare(self._request)
        return self

    @property
    def pieces(self) -> AsyncIterator[str | Reply]:
        """The text as it comes, and at last the reply."""
        return self._pieces()

    async def _pieces(self) -> AsyncGenerator[str | Reply]:
        piece = self._first
        while piece is not None:
            if isinstance(piece, Withdrawn):
                raise Refused(502, WITHDRAWN)
            yield piece
            piece = await anext(self._source, None)

    async def send(self, data: dict[str, Any], event: str = "") -> None:
        """Send an event."""
        name = f"event: {event}\n".encode() if event else b""
        await self.write(name + b"data: " + msgspec.json.encode(data) + b"\n\n")

    async def write(self, data: bytes) -> None:
        """Send these bytes."""
        await self.response.write(data)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        await self._source.aclose()
        if isinstance(error, Refused):
            await self.send({"error": {"message": error.text, "code": error.status}}, "error")
        return isinstance(error, Refused)
