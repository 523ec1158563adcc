"""Requests to the providers, over connections that one pool keeps for all models of a process."""

import asyncio
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from aiohappyeyeballs import start_connection

from denizen.models.connection import Connection
from denizen.models.endpoint import Endpoint, Server

KEPT: Final = 30.0
"""Seconds that a connection which nobody uses is kept."""

STAGGER: Final = 0.25
"""Seconds after which the next address of a host is tried, too (RFC 8305)."""

CONNECT: Final = 10.0
"""Seconds until a connection stands."""

SILENCE: Final = 120.0
"""Seconds without a byte after which a stream has died."""

PATIENCE: Final = 600.0
"""The same for an answer in one piece, where nothing comes until the model has thought it to its end."""

_NO_TLS: Final = (ssl.SSLError, ConnectionResetError)


class Http:
    """Sends requests; keeps connections open between them.

    `connect`, `silence` and `patience` are `CONNECT`, `SILENCE` and `PATIENCE` unless given.
    Environment variables don't change where requests go, and a redirect is never followed with the key.
    """

    def __init__(self, *, connect: float = CONNECT, silence: float = SILENCE, patience: float = PATIENCE) -> None:
        self._connect = connect
        self._silence = silence
        self._patience = patience
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}
        self._tls: ssl.SSLContext | None = None

    def post(self, to: Endpoint, body: Sequence[bytes], *, stream: bool) -> "Exchange":
        """POST the pieces of a body; the answer's is still to be read. Entering it raises OSError, as reading does."""
        head = b"%scontent-length: %d\r\n\r\n" % (to.head, sum(map(len, body)))
        return Exchange(self, to.server, head, body, self._silence if stream else self._patience)

    async def take(self, server: Server) -> Connection:
        """A connection that nobody uses, or a new one."""
        return self._pool().take(server) or await self.open(server)

    async def open(self, server: Server) -> Connection:
        """A new connection."""
        loop = asyncio.get_running_loop()
        tls: dict[str, Any] = {"ssl": self._context(), "server_hostname": server.host} if server.tls else {}
        try:
            async with asyncio.timeout(self._connect):
                addresses = await loop.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
                reached = await start_connection(addresses, happy_eyeballs_delay=STAGGER)
                _, connection = await loop.create_connection(Connection, sock=reached, **tls)
        except OSError as error:
            raise _in_words(error, server, self._connect) from None
        return connection

    def give_back(self, server: Server, connection: Connection) -> None:
        """Keep a connection for the next request, or close one that is of no use."""
        if connection.reusable:
            self._pool().keep(server, connection)
        else:
            connection.close()

    async def close(self) -> None:
        """Close the connections of this event loop that nobody uses; the next request opens new ones."""
        if pool := self._pools.pop(asyncio.get_running_loop(), None):
            pool.close()
            await asyncio.sleep(0)  # a transport is closed by the loop's next round

    def _pool(self) -> "_Pool":
        """That of this event loop: a connection can't be used in another."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            for ended in [each for each in list(self._pools) if each.is_closed()]:
                self._pools.pop(ended, None)
            pool = self._pools[loop] = _Pool(loop)
        return pool

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls


class Exchange:
    """A request and its answer: entered, it is sent, and gives the connection that the answer comes over."""

    __slots__ = ("_body", "_connection", "_head", "_http", "_server", "_silence")

    def __init__(self, http: Http, server: Server, head: bytes, body: Sequence[bytes], silence: float) -> None:
        self._http = http
        self._server = server
        self._head = head
        self._body = body
        self._silence = silence

    async def __aenter__(self) -> Connection:
        connection = await self._http.take(self._server)
        try:
            return await self._sent(connection)
        except ConnectionError:
            if not connection.lapsed:
                raise
        return await self._sent(await self._http.open(self._server))

    async def _sent(self, connection: Connection) -> Connection:
        self._connection = connection
        try:
            await connection.send(self._head, self._body, self._silence)
        except BaseException:
            connection.close()
            raise
        return connection

    async def __aexit__(self, *_: object) -> None:
        self._http.give_back(self._server, self._connection)


class _Pool:
    """The connections of one event loop that nobody uses."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._idle: dict[Server, list[Connection]] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    def take(self, server: Server) -> Connection | None:
        """The one that was used last."""
        idle = self._idle.get(server)
        while idle:
            if (connection := idle.pop()).reusable:
                return connection
        return None

    def keep(self, server: Server, connection: Connection) -> None:
        """Keep one for `KEPT` seconds."""
        connection.idle_since = self._loop.time()
        self._idle.setdefault(server, []).append(connection)
        if not self._sweeping:
            self._sweeping = self._loop.call_later(KEPT, self._sweep)

    def close(self) -> None:
        """Close them all."""
        if self._sweeping:
            self._sweeping.cancel()
        for connection in self._all():
            connection.close()
        self._idle.clear()

    def _sweep(self) -> None:
        """Close those that were kept for long enough."""
        since = self._loop.time() - KEPT
        for connection in self._all():
            if connection.idle_since <= since:
                connection.close()
        self._idle = {server: kept for server, idle in self._idle.items() if (kept := [*filter(_usable, idle)])}
        self._sweeping = self._loop.call_later(KEPT, self._sweep) if self._idle else None

    def _all(self) -> Iterator[Connection]:
        for idle in self._idle.values():
            yield from idle


async def finish(connection: Connection, seconds: float = 1.0) -> None:
    """Read what follows a complete answer, so that its connection can be used again; don't wait long for it."""
    if not connection.ended:
        with suppress(OSError):
            async with asyncio.timeout(seconds):
                await connection.read()


def _usable(connection: Connection) -> bool:
    return connection.reusable


def _in_words(error: OSError, server: Server, seconds: float) -> OSError:
    """What somebody can act on, where the system says less."""
    if isinstance(error, TimeoutError):
        return TimeoutError(f"no connection within {seconds:g} s")
    if isinstance(error, socket.gaierror):
        return ConnectionError(f"the host {server.host} can't be found ({error.strerror})")
    if server.tls and isinstance(error, _NO_TLS) and not isinstance(error, ssl.SSLCertVerificationError):
        return ConnectionError(f"no TLS with {server} ({getattr(error, 'reason', 'it hung up')}): does it speak https?")
    return error
