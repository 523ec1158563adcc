"""Open connections: silent ones time out, and ones without the token are closed if descriptors run short."""

import asyncio
import errno
import logging
import resource
from typing import Any
from weakref import WeakSet

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

HEADERS_S = 10.0
"""Seconds that a new connection has for the headers of its first request."""
IDLE_S = 75.0
"""Seconds that a connection may wait for its next request."""
RESERVED_DESCRIPTORS = 256
"""Descriptors kept for sessions, databases and programs, at most half of all."""
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_log = logging.getLogger(__name__)


class Connections:
    """Accepts a server's connections; those in `owners` have shown the token, and are never closed to make room."""

    def __init__(self, headers_s: float = HEADERS_S) -> None:
        self._headers_s = headers_s
        self.owners = WeakSet[asyncio.BaseTransport]()
        self._heard = WeakSet[asyncio.BaseTransport]()
        self._max = _max_connections()

    def hear(self, request: web.BaseRequest, *, is_owner: bool) -> None:
        """Note that a connection has sent the headers of a request, and whether with the token."""
        if request.transport:
            self._heard.add(request.transport)
            (self.owners.add if is_owner else self.owners.discard)(request.transport)

    async def listen(self, runner: web.BaseRunner, host: str, port: int) -> asyncio.Server:
        """Accept connections there for a runner that is set up. Raises OSError."""
        loop, server = asyncio.get_running_loop(), runner.server
        if server is None:
            raise RuntimeError("The runner isn't set up.")

        def connect() -> RequestHandler:
            if len(server.connections) >= self._max:
                self._close_oldest_stranger(server)
            protocol = server()
            loop.call_later(self._headers_s, self._close_silent, protocol)
            return protocol

        def on_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            error = context.get("exception")
            if not (isinstance(error, OSError) and error.errno in _EXHAUSTED and "socket" in context):
                loop.default_exception_handler(context)
                return
            self._close_oldest_stranger(server)  # the loop accepts again in a second
            _log.error("No connection can be accepted: %s. The oldest one without the token is closed.", error.strerror)

        loop.set_exception_handler(on_error)
        return await loop.create_server(connect, host, port, backlog=128, reuse_address=True)

    def _close_silent(self, protocol: RequestHandler) -> None:
        if protocol.transport and protocol.transport not in self._heard:
            protocol.transport.abort()

    def _close_oldest_stranger(self, server: web.Server) -> None:
        open_ = (each.transport for each in server.connections)
        strangers = (each for each in open_ if each and not each.is_closing() and each not in self.owners)
        if oldest := next(strangers, None):
            oldest.abort()


def _max_connections() -> int:
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        descriptors = 1 << 20
    return descriptors - min(RESERVED_DESCRIPTORS, descriptors // 2)


def protocol_log() -> logging.Logger:
    """The log of what clients send that isn't HTTP, without the headers: the token may be in them."""
    log = _log.getChild("protocol")
    log.addFilter(_leave_out_headers)
    return log


def _leave_out_headers(record: logging.LogRecord) -> bool:
    if isinstance(record.exc_info, tuple) and isinstance(record.exc_info[1], HttpProcessingError):
        record.msg, record.levelno, record.levelname = (
            "A malformed request from %s is refused.",
            logging.WARNING,
            "WARNING",
        )
        record.exc_info = None
    return True
