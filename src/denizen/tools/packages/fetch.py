"""Asking registries: small answers, a few at a time, and none again after one couldn't be reached."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from denizen.errors import DenizenError

if TYPE_CHECKING:  # it takes its time to import
    import aiohttp

LARGEST = 20_000_000
"""Bytes of an answer."""
_AT_ONCE = 8
_HEADERS = {"User-Agent": "Denizen", "Accept": "application/json"}


class Unreachable(DenizenError):
    """A registry can't be asked; its text says why."""


class Fetch:
    """Asks one registry."""

    def __init__(self, session: "aiohttp.ClientSession", base: str) -> None:
        self._session = session
        self._base = base.rstrip("/")
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._down = ""

    async def text(self, path: str) -> bytes | None:
        """The answer to a path; None where there is nothing. Raises Unreachable."""
        return await self._ask("GET", path, None)

    async def json(self, path: str, body: Any = None) -> Any:
        """The answer as data; of a body, that to posting it. Raises Unreachable also for what isn't JSON."""
        data = None if body is None else msgspec.json.encode(body)
        answer = await self._ask("GET" if body is None else "POST", path, data)
        try:
            return None if answer is None else msgspec.json.decode(answer)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Unreachable(f"{self._base} answered something that isn't JSON: {error}") from error

    async def _ask(self, method: str, path: str, body: bytes | None) -> bytes | None:
        import aiohttp
        from yarl import URL

        async with self._turn:
            if self._down:
                raise Unreachable(self._down)
            try:
                url = URL(f"{self._base}/{path}", encoded=True)
                headers = {"Content-Type": "application/json"} if body else {}
                async with self._session.request(
                    method, url, data=body, headers=headers, allow_redirects=False
                ) as response:
                    return await self._read(response)
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                self._down = f"{self._base} can't be reached: {error or 'it took too long'}"
                raise Unreachable(self._down) from error

    async def _read(self, response: "aiohttp.ClientResponse") -> bytes | None:
        if response.status in {404, 410}:
            return None
        if response.status != 200:
            raise Unreachable(f"{self._base} answered {response.status}")
        data = bytearray()
        async for piece in response.content.iter_any():
            data += piece
            if len(data) > LARGEST:
                raise Unreachable(f"{self._base} answered with more than {LARGEST:,} bytes")
        return bytes(data)


@asynccontextmanager
async def opened(seconds: float) -> "AsyncGenerator[aiohttp.ClientSession]":
    """Connections for one call; each answer must come within so many seconds.

    Proxy variables of the environment are not read, and no redirect is followed: packages are asked for where the
    user's settings say, and nowhere else.
    """
    import aiohttp

    async with aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=seconds),
        headers=_HEADERS,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
    ) as session:
        yield session
