"""Connections to the web: to addresses that may be connected to, and answers that can't fill the memory."""

import socket
import zlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from denizen.errors import ToolRefused
from denizen.tools.fetching.addresses import AddressGuard

if TYPE_CHECKING:  # it takes its time to import
    from aiohttp import ClientResponse, ClientSession


@asynccontextmanager
async def web_session(guard: AddressGuard, headers: Mapping[str, str]) -> "AsyncGenerator[ClientSession]":
    """A session that connects to what `guard` lets through; it keeps no cookies and asks no proxy."""
    import aiohttp
    from aiohttp.abc import ResolveResult
    from aiohttp.resolver import ThreadedResolver

    class Resolver(ThreadedResolver):
        """Looks a name up once, and returns its addresses only if every one of them may be connected to."""

        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
        ) -> list[ResolveResult]:
            found = await super().resolve(host, port, family)
            for each in found:
                guard.check(host, each["host"])
            return found

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(resolver=Resolver(), use_dns_cache=False, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "Denizen", "Accept-Encoding": "gzip", **headers},
        auto_decompress=False,  # a small answer may hold gigabytes
        trust_env=False,  # a proxy would connect to wherever it is asked to
    ) as session:
        yield session


async def read_body(response: "ClientResponse", most: int) -> tuple[bytes, bool]:
    """The answer's bytes, unpacked, at most `most`; and whether there were more.

    Raises ToolRefused for a compression that wasn't asked for, and zlib.error for damaged data.
    """
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip", "x-gzip", ""}:
        raise ToolRefused(f"{response.url} uses a compression that wasn't requested: {encoding}")
    inflate = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += inflate.decompress(chunk, most + 1 - len(data)) if inflate else chunk
        if len(data) > most:
            break
    return bytes(data[:most]), len(data) > most
