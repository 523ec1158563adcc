"""A server that says exactly the bytes it is given, and a clock that a test puts forward."""

import asyncio
import gc
import socket
import ssl
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from tests.models.calls import call, failure

from denizen.models.endpoint import Endpoint
from denizen.models.http import Http, Response
from denizen.models.openai import OpenAIModel
from denizen.models.providers import provider_named

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Last(bytes):
    """An answer after which the server closes the connection."""


def whole(body: bytes, *fields: str, status: str = "200 OK") -> bytes:
    """An answer with its length."""
    lines = [f"HTTP/1.1 {status}", *fields, f"Content-Length: {len(body)}"]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


class Raw:
    """Each request, over whichever connection, is answered by the next of `answers`; when none is left, by silence.

    An answer is bytes, sent in pieces of `size` (0: at once), or a function that talks as it likes after the request's
    head, and is the last on its connection.
    """

    def __init__(self, *answers: bytes | Talk, size: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.answers = deque(answers)
        self.heard: list[bytes] = []
        self.connections = 0
        self.open: list[asyncio.StreamWriter] = []
        self.asked = asyncio.Event()
        """Some request has begun."""
        self.gone = asyncio.Event()
        """Some connection has ended."""
        self._size = size
        self._tls = tls

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        while self.open:
            self.gone.clear()
            for writer in self.open:
                writer.transport.abort()
            await self.gone.wait()
        await rounds(3)

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open.append(writer)
        try:
            await self._answer(reader, writer)
            await reader.read()  # until the client goes
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.transport.abort()
            self.open.remove(writer)
            self.gone.set()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while self.answers:
            head = await reader.readuntil(b"\r\n\r\n")
            answer = self.answers.popleft()
            self.asked.set()
            if callable(answer):
                await answer(reader, writer)
                return
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
            self.heard.append(head + await reader.readexactly(length))
            await self._say(writer, answer)
            if isinstance(answer, Last):
                writer.close()
                return

    async def _say(self, writer: asyncio.StreamWriter, answer: bytes) -> None:
        size = self._size or max(len(answer), 1)
        for start in range(0, len(answer), size):
            writer.write(answer[start : start + size])
            await writer.drain()
            await rounds(2 if self._size else 0)


async def deaf(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read nothing any more, and say nothing."""
    assert isinstance(writer.transport, asyncio.Transport)
    writer.transport.pause_reading()


async def ask(http: Http, url: str, body: bytes = b"Hi", *, stream: bool = False) -> bytes:
    """The body of the answer to one request."""
    async with http.post(Endpoint(url, "/ask", "base_url"), [body], stream=stream) as response:
        return await response.read()


async def look(http: Http, url: str) -> Response:
    """The answer to one request; `headers` and `status` are there."""
    async with http.post(Endpoint(url, "/ask", "base_url"), [b"Hi"], stream=False) as response:
        await response.read()
        return response


async def complaint(base_url: str, http: Http | None = None, provider: str = "openai") -> str:
    """What the user of a model at that address is told."""
    model = OpenAIModel("m", provider_named(provider), base_url=base_url, http=http)
    return failure(await call(model)).message


async def rounds(count: int) -> None:
    """Let everything else run, in so many rounds of the event loop."""
    for _ in range(count):
        await asyncio.sleep(0)


@asynccontextmanager
async def nothing_left() -> AsyncGenerator[None]:
    """Afterwards there are as many sockets and tasks as before, and no failure that nobody heard."""
    loop = asyncio.get_running_loop()
    complaints: list[object] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    files, tasks = open_files(), asyncio.all_tasks()
    yield
    await rounds(5)
    gc.collect(1)
    running = asyncio.all_tasks() - tasks - {asyncio.current_task()}
    assert (complaints, open_files() - files, running) == ([], 0, set())


def open_files() -> int:
    """How many files and sockets this process has open."""
    return len([*Path("/dev/fd").iterdir()])


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be put forward, and whose hosts have the addresses that a test wants."""

    ahead = 0.0

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.timers: list[asyncio.TimerHandle] = []
        super().__init__()

    def time(self) -> float:
        return super().time() + self.ahead

    def call_at(self, when: float, *args: Any, **options: Any) -> asyncio.TimerHandle:
        timer = super().call_at(when, *args, **options)
        self.timers.append(timer)
        return timer

    def waiting(self) -> list[asyncio.TimerHandle]:
        """The timers that are still to go off."""
        return [timer for timer in self.timers if not timer.cancelled() and timer.when() > self.time()]

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        if not self.addresses:
            return socket.getaddrinfo(host, port, **options)
        if self.addresses == ("nowhere",):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        if self.addresses == ("unheard",):
            await self.create_future()
        families = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in self.addresses]
        return [
            (family, socket.SOCK_STREAM, 0, "", (address, port))
            for family, address in zip(families, self.addresses, strict=True)
        ]


async def skip(seconds: float) -> None:
    """Put the clock of a `Loop` forward."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Loop)
    await rounds(20)
    loop.ahead += seconds
    await rounds(20)


def run(test: Coroutine[Any, Any, None], *addresses: str) -> None:
    """Run it in a `Loop`."""
    with asyncio.Runner(loop_factory=lambda: Loop(*addresses)) as runner:
        runner.run(test)
