"""A model server on loopback, in a process of its own, that answers at once with prebuilt bytes.

It speaks Anthropic Messages and OpenAI Chat Completions, buffered and streamed, and the streams of OpenAI Responses and
Gemini. The path's first part says how: `/scene` plays the scene (a tool call, then the answer), `/words` streams one
long reply, `/answer` answers without a call, `/echo` repeats the ticket of the last message, `/slow` does so after
200 ms, `/hold` never answers. `GET /stats` gives and resets the requests and bytes received, `GET /arrivals` when each
ticket came first, `GET /body` the last request body that came.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks import wire
from benchmarks.scene import QUESTION, RESULT, TICKET

_QUESTION, _RESULT, _TICKET = QUESTION.encode(), RESULT.encode(), TICKET.encode()
_SLOW = 0.2  # seconds


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request, as much of it as the server looks at."""

    target: str
    body: bytes

    @property
    def ticket(self) -> bytes:
        """The number of the last ticket in the body."""
        begin = self.body.rfind(_TICKET) + len(_TICKET)
        return self.body[begin : begin + len(wire.SERIAL)]


@dataclass(slots=True)
class Record:
    """What came since it was last asked for."""

    requests: int = 0
    received: int = 0
    body: bytes = b""
    before: bytes = b""
    tickets: dict[str, float] = field(default_factory=dict)  # when each came first, by the system's monotonic clock

    def note(self, request: Request) -> None:
        if request.target.startswith(("/echo", "/slow")):
            self.tickets.setdefault(request.ticket.decode(), time.monotonic())
        self.requests += 1
        self.received += len(request.body)
        self.before, self.body = self.body, request.body

    def stats(self) -> bytes:
        """The counts as JSON; counting starts again at zero."""
        counts = {"requests": self.requests, "bytes": self.received}
        self.requests = self.received = 0
        return json.dumps(counts).encode()

    def arrivals(self) -> bytes:
        """The tickets and their times as JSON; they are forgotten then."""
        tickets, self.tickets = self.tickets, {}
        return json.dumps(tickets).encode()


def take(buffer: bytearray) -> Request | None:
    """Cut one whole request off the front of `buffer`; None while it is still arriving."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    line, *headers = buffer[:end].decode("latin-1").split("\r\n")
    length = next((int(h[15:]) for h in headers if h[:15].lower() == "content-length:"), 0)
    if len(buffer) < end + 4 + length:
        return None
    request = Request(line.split(" ")[1], bytes(buffer[end + 4 : end + 4 + length]))
    del buffer[: end + 4 + length]
    return request


def format_of(request: Request) -> wire.Replies:
    """The wire format that the request is written in."""
    streamed = b'"stream":true' in request.body or b'"stream": true' in request.body
    if request.target.endswith("/messages"):
        return wire.ANTHROPIC_STREAMED if streamed else wire.ANTHROPIC
    if ":streamGenerateContent" in request.target:
        return wire.GEMINI_STREAMED
    if request.target.endswith("/responses"):
        return wire.RESPONSES_STREAMED
    return wire.OPENAI_STREAMED if streamed else wire.OPENAI


def answer(request: Request) -> bytes | None:
    """The model's reply: which one depends on whether tools are offered, and a result came after the last question."""
    replies = format_of(request)
    if request.target.startswith("/hold"):
        return None
    if request.target.startswith(("/echo", "/slow")):
        return replies.echo.numbered(request.ticket)
    if request.target.startswith("/answer"):
        return replies.answer.fresh()
    if request.target.startswith("/words"):
        return replies.words.fresh()
    if b'"tools":' in request.body and request.body.rfind(_RESULT) < request.body.rfind(_QUESTION):
        return replies.call.fresh()
    return (replies.finish if b"final_answer" in request.body else replies.answer).fresh()


def plain(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


class Connection(asyncio.Protocol):
    """One client's connection; requests on it are answered in order."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._buffer = bytearray()
        self._write: Callable[[bytes], None] = lambda _: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._write = transport.write

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (request := take(self._buffer)) is not None:
            if (reply := self._reply(request)) is not None:
                if request.target.startswith("/slow"):
                    asyncio.get_running_loop().call_later(_SLOW, self._write, reply)
                else:
                    self._write(reply)

    def _reply(self, request: Request) -> bytes | None:
        match request.target:
            case "/stats":
                return plain(self._record.stats())
            case "/arrivals":
                return plain(self._record.arrivals())
            case "/body":
                return plain(self._record.body)
            case "/body/before":
                return plain(self._record.before)
        self._record.note(request)
        return answer(request)


async def serve() -> None:
    """Serve on a free port, named in one line on standard output, until standard input closes."""
    loop = asyncio.get_running_loop()
    record = Record()
    server = await loop.create_server(lambda: Connection(record), "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve())
