"""Requests to the providers, over connections that one pool keeps for all models of a process."""

import asyncio
import base64
import re
import socket
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from aiohappyeyeballs import start_connection

from denizen.errors import ConfigError
from denizen.models.connection import Connection

KEPT: Final = 30.0
"""Seconds that a connection which nobody uses is kept."""

STAGGER: Final = 0.25
"""Seconds after which the next address of a host is tried, too (RFC 8305)."""


class Server(NamedTuple):
    """Whom a connection leads to."""

    tls: bool
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _port(tls=self.tls) else f":{self.port}"
        return f"{'https' if self.tls else 'http'}://{host}{port}"


class Endpoint:
    """The address of `path` (`/messages`) below `base_url`, and what each request to it begins with.

    A query in `base_url` (`?api-version=1`) stays, after `path`. `headers`: fields, the later sources' over the earlier
    ones'. Raises ConfigError where `base_url` is no address, naming the setting, or a field can't be sent.
    """

    def __init__(self, base_url: str, path: str, setting: str, *headers: Mapping[str, str]) -> None:
        try:
            parts = urlsplit(base_url.strip())
            host, port = _host(parts.hostname or ""), parts.port
            login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}".encode()
            below = quote(parts.path.rstrip("/"), safe=_IN_PATHS)
            query = quote(parts.query, safe=f"{_IN_PATHS}?")
        except ValueError:  # a port that is none, a host that can't be
            raise ConfigError(_no_address(base_url, setting)) from None
        if parts.scheme not in {"http", "https"} or port == 0 or parts.fragment:
            raise ConfigError(_no_address(base_url, setting))
        tls = parts.scheme == "https"
        self.server = Server(tls, host, port or _port(tls=tls))
        self.base_url = f"{self.server}{below}"
        """As it was understood, without a user's name and password, and without a query."""
        target = f"{below}{quote(path, safe=_IN_PATHS)}{query and f'?{query}'}"
        fields = {
            "host": str(self.server).partition("://")[2],
            "accept": "*/*",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "denizen",
        }
        if parts.username is not None:
            fields["authorization"] = f"Basic {base64.b64encode(login).decode()}"
        for source in headers:
            fields |= {name.lower(): _sendable(name, value) for name, value in source.items()}
        lines = [f"POST {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        self.head = "".join(f"{line}\r\n" for line in lines).encode()


class Http:
    """Sends requests; keeps connections open between them.

    `connect`: seconds until a connection stands. `silence`: seconds without a byte after which a stream has died;
    `patience`: the same for an answer in one piece, where nothing comes until the model has thought it to its end.
    Environment variables don't change where requests go, and a redirect is never followed with the key.
    """

    def __init__(self, *, connect: float = 10.0, silence: float = 120.0, patience: float = 600.0) -> None:
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

    __slots__ = ("_body", "_connection", "_head", "_http", "_origin", "_silence")

    def __init__(self, http: Http, server: Server, head: bytes, body: Sequence[bytes], silence: float) -> None:
        self._http = http
        self._origin = server
        self._head = head
        self._body = body
        self._silence = silence

    async def __aenter__(self) -> Connection:
        connection = await self._http.take(self._origin)
        try:
            return await self._sent(connection)
        except ConnectionError:
            if not connection.lapsed:
                raise
        return await self._sent(await self._http.open(self._origin))

    async def _sent(self, connection: Connection) -> Connection:
        self._connection = connection
        try:
            await connection.send(self._head, self._body, self._silence)
        except BaseException:
            connection.close()
            raise
        return connection

    async def __aexit__(self, *_: object) -> None:
        self._http.give_back(self._origin, self._connection)


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


_IN_PATHS: Final = "/%:@!$&'()*+,;=~"
_HOSTS: Final = re.compile(r"(?:[\w-]{1,63}\.)*[\w-]{1,63}\.?|[\da-f:.]*:[\da-f:.]*(?:%\w+)?", re.ASCII)
_NAMES: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_NO_TLS: Final = (ssl.SSLError, ConnectionResetError)
_FRAMING: Final = {"content-length", "transfer-encoding"}


def _usable(connection: Connection) -> bool:
    return connection.reusable


def _port(*, tls: bool) -> int:
    return 443 if tls else 80


def _host(name: str) -> str:
    """As the wire has it. Raises ValueError where no host can be called so."""
    name = name if name.isascii() else name.encode("idna").decode()
    if not _HOSTS.fullmatch(name):
        raise ValueError(name)
    return name


def _in_words(error: OSError, server: Server, seconds: float) -> OSError:
    """What somebody can act on, where the system says less."""
    if isinstance(error, TimeoutError):
        return TimeoutError(f"no connection within {seconds:g} s")
    if isinstance(error, socket.gaierror):
        return ConnectionError(f"the host {server.host} can't be found ({error.strerror})")
    if server.tls and isinstance(error, _NO_TLS) and not isinstance(error, ssl.SSLCertVerificationError):
        return ConnectionError(f"no TLS with {server} ({getattr(error, 'reason', 'it hung up')}): does it speak https?")
    return error


def _sendable(name: str, value: str) -> str:
    if not _NAMES.fullmatch(name) or name.lower() in _FRAMING:
        raise ConfigError(
            f"{name!r} can't be one of the provider's headers: it is no field's name, or not yours to set"
        )
    if not value.isprintable():
        raise ConfigError(f"The header {name} (a key, or one of the provider's headers) holds a control character")
    return value


def _no_address(base_url: str, setting: str) -> str:
    base_url = re.sub("[^/@]*@", "", base_url, count=1)  # no password
    return f'{setting} is "{base_url}", not an http or https address: write {_meant(base_url)}'


def _meant(base_url: str) -> str:
    """The address that was probably meant, where only its scheme is missing; else an example."""
    host, slash, path = base_url.partition("/")
    if not host or "://" in base_url:
        return "one like http://localhost:8080/v1"
    scheme = "https" if "." in host and ":" not in host else "http"
    return f"{scheme}://{host}/{path if slash else 'v1'}"
