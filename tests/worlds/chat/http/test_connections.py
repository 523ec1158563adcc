"""Connections that say nothing, and too many of them."""

import asyncio
import resource
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

import pytest
from aiohttp import web
from tests.worlds.chat.conftest import PATIENCE, Serve
from tests.worlds.chat.http.test_http import reached

from denizen.worlds.chat.http.connections import Connections
from denizen.worlds.chat.http.token import read_token

GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@asynccontextmanager
async def listening(connections: Connections) -> AsyncGenerator[int]:
    """The port of a server that answers 200."""

    async def answer(request: web.BaseRequest) -> web.Response:
        connections.hear(request, is_owner="Authorization" in request.headers)
        return web.Response()

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    server = await connections.listen(runner, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await runner.cleanup()
    asyncio.get_running_loop().set_exception_handler(None)


async def status_of(reader: asyncio.StreamReader) -> bytes:
    """The status line of an answer; empty where the connection was closed."""
    async with asyncio.timeout(PATIENCE):
        return await reader.readline()


@pytest.mark.parametrize("sent", [b"", GET])
async def test_connection_without_headers_is_closed(sent: bytes) -> None:
    async with listening(Connections(headers_s=0.01)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        assert await status_of(reader) == b""
        writer.close()


async def test_oldest_connection_without_the_token_makes_room() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    connections = Connections()
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    async with listening(connections) as port, AsyncExitStack() as opened:
        owner, writer = await asyncio.open_connection("127.0.0.1", port)
        opened.callback(writer.close)
        writer.write(GET + b"Authorization: Bearer it\r\n\r\n")
        assert b"200" in await status_of(owner)
        strangers = list[asyncio.StreamReader]()
        for _ in range(32):
            reader, silent = await asyncio.open_connection("127.0.0.1", port)
            opened.callback(silent.close)
            strangers.append(reader)
        assert await status_of(strangers[0]) == b"", "of the 33, 32 may be open"
        writer.write(GET + b"\r\n")
        async with asyncio.timeout(PATIENCE):
            await owner.readuntil(b"200 OK")
        assert not strangers[1].at_eof()


async def test_oldest_stranger_is_closed_where_no_descriptor_is_left(caplog: pytest.LogCaptureFixture) -> None:
    async with listening(Connections()) as port:
        first, writer = await asyncio.open_connection("127.0.0.1", port)
        with closing(socket.socket()) as late, closing(socket.socket()) as probe:
            late.setblocking(False)
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            highest = probe.fileno()
            probe.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
            try:
                loop = asyncio.get_running_loop()
                await loop.sock_connect(late, ("127.0.0.1", port))
                assert await status_of(first) == b""
                writer.close()
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            await loop.sock_sendall(late, GET + b"\r\n")
            async with asyncio.timeout(PATIENCE):
                assert (await loop.sock_recv(late, 15)).startswith(b"HTTP/1.1 200")
        assert "No connection can be accepted: Too many open files." in caplog.text
        assert "Traceback" not in caplog.text


async def test_malformed_request_leaves_no_header_in_the_log(
    serve: Serve, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve() as scene, reached(scene, home) as client:
        port = int(client.url.rpartition(":")[2])
        token = read_token(home)
        for broken in (b"Authorization: Bearer %s\0\r\n", b"Authorization : Bearer %s\r\n", b"Bearer %s\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(GET + broken % token.encode() + b"\r\n")
            assert b"400" in await status_of(reader)
            writer.close()
    assert "A malformed request from 127.0.0.1 is refused." in caplog.text
    assert token not in caplog.text


async def test_two_hosts_are_refused(serve: Serve, home: Path) -> None:
    async with serve() as scene, reached(scene, home) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(client.url.rpartition(":")[2]))
        writer.write(GET + b"Host: localhost\r\n\r\n")
        assert (await status_of(reader)).split()[1] in {b"400", b"403"}
        writer.close()
