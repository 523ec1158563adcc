"""The connections to the providers: one pool for all models of a process, opened at the first request."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from multidict import CIMultiDict
from yarl import URL

from denizen.errors import ConfigError
from denizen.models.encoding import BLOCK

LONGEST_WRITE: Final = 1024 * 1024
"""Bytes that are written before others may run."""


class Http:
    """Sends requests; keeps connections open between them.

    `connect`: seconds until a connection stands. `silence`: seconds without a byte after which a stream has died;
    `patience`: the same for an answer in one piece, where nothing comes until the model has thought it to its end.
    Environment variables don't change where requests go, and a redirect is never followed with the key.
    """

    def __init__(self, *, connect: float = 10.0, silence: float = 120.0, patience: float = 600.0) -> None:
        self._streaming = aiohttp.ClientTimeout(total=None, connect=connect, sock_read=silence)
        self._buffered = aiohttp.ClientTimeout(total=None, connect=connect, sock_read=patience)
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}

    def post(
        self, url: URL, body: Sequence[bytes], headers: CIMultiDict[str], *, stream: bool
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """POST the pieces of a body; the response's is still to be read. Raises aiohttp's errors and TimeoutError."""
        return self._opened().post(
            url,
            data=_payload(body),
            headers=headers,
            timeout=self._streaming if stream else self._buffered,
            allow_redirects=False,
        )

    def _opened(self) -> aiohttp.ClientSession:
        """The pool of this event loop: a connection can't be used in another."""
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30)
            self._sessions[loop] = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._sessions[loop]

    async def close(self) -> None:
        """Give back the connections of this event loop and of ended ones; the next request opens new ones."""
        here = asyncio.get_running_loop()
        for loop in [loop for loop in self._sessions if loop is here or loop.is_closed()]:
            await self._sessions.pop(loop).close()


def _payload(pieces: Sequence[bytes]) -> "bytes | _Blocks":
    """A body, in as few writes as possible: each is a system call, but copying what is large costs more."""
    size = sum(map(len, pieces))
    return b"".join(pieces) if size <= BLOCK else _Blocks(pieces, size)


class _Blocks(aiohttp.Payload):
    """A large body, sent as it lies in memory."""

    _value: Sequence[bytes]

    def __init__(self, pieces: Sequence[bytes], size: int) -> None:
        super().__init__(pieces, content_type="application/json")
        self._size = size

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return b"".join(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        for piece in self._value:
            view = memoryview(piece)
            for start in range(0, len(view), LONGEST_WRITE):
                await writer.write(view[start : start + LONGEST_WRITE])


async def finish(response: aiohttp.ClientResponse, seconds: float = 1.0) -> None:
    """Read what follows a complete answer, so that its connection can be used again; don't wait long for it."""
    if not response.content.at_eof():
        with suppress(aiohttp.ClientError, TimeoutError):
            async with asyncio.timeout(seconds):
                await response.content.read()


def endpoint(base_url: str, path: str, setting: str) -> URL:
    """The address of `path` (`/messages`) below `base_url`. Raises ConfigError, naming the setting, if that is none."""
    url = URL(base_url.rstrip("/") + path)
    if url.scheme not in {"http", "https"} or not url.host:
        raise ConfigError(f'{setting} is "{base_url}", not an http or https address: write {_meant(base_url)}')
    return url


def _meant(base_url: str) -> str:
    """The address that was probably meant, where only its scheme is missing; else an example."""
    host, slash, path = base_url.partition("/")
    if not host or "://" in base_url:
        return "one like http://localhost:8080/v1"
    scheme = "https" if "." in host and ":" not in host else "http"
    return f"{scheme}://{host}/{path if slash else 'v1'}"


def header_fields(*sources: Mapping[str, str]) -> CIMultiDict[str]:
    """Header fields, the later sources' over the earlier ones'. Raises ConfigError where one can't be sent."""
    fields = CIMultiDict({"Content-Type": "application/json"})
    for source in sources:
        fields.update(source)
    for name, value in fields.items():
        if not value.isprintable():
            raise ConfigError(f"The header {name} (a key, or one of the provider's headers) holds a control character")
    return fields
