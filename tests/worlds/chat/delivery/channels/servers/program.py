"""Servers of tests: a program run in a folder of its own, and ports that can be closed."""

import asyncio
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from ssl import SSLContext
from typing import Self

from aiohttp import web
from tests.worlds.moo.djangomoo import wait_for_port


@contextmanager
def running(command: list[str], folder: Path, *ports: int) -> Generator[subprocess.Popen[bytes]]:
    """The program, once it listens on these ports of 127.0.0.1; it is killed at the end of the block."""
    with (folder / "output.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        for port in ports:
            wait_for_port(port)
        yield process
    finally:
        process.kill()
        process.wait()


class Listener:
    """A port of 127.0.0.1 for an HTTP server, which can be closed, and opened again."""

    def __init__(self, runner: web.BaseRunner, tls: SSLContext | None = None) -> None:
        self.port = 0
        self._runner, self._tls = runner, tls

    async def open(self) -> None:
        """Listen: at any port the first time, then at the same."""
        self._site = web.TCPSite(self._runner, "127.0.0.1", self.port, ssl_context=self._tls)
        await self._site.start()
        self.port = self._site.port

    async def close(self) -> None:
        """Refuse new connections."""
        await self._site.stop()


class Relay:
    """A port that leads to a server. `cut` breaks the connections; `deaf` the next one to get an answer, unheard.

    `answers` has the server's bytes; `answer` adds some to those of the last connection.
    """

    def __init__(self, to: int) -> None:
        self.port = 0
        self.deaf = False
        self.answers = bytearray()
        self._to = to
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> Self:
        """Listen: at any port the first time, then at the same."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    def answer(self, data: bytes) -> None:
        client, _ = self._writers[-2:]
        client.write(data)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers += [writer, server_writer]
        await asyncio.gather(self._pump(reader, server_writer, False), self._pump(server_reader, writer, True))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_answer: bool) -> None:
        try:
            while data := await reader.read(65536):
                if is_answer and self.deaf:
                    self.deaf = False
                    self.cut()
                    return
                if is_answer:
                    self.answers += data
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and localhost that only its own server vouches for, and its key."""
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    return certificate, key
