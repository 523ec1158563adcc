"""Model servers on this machine's loopback: real HTTP, replies from a queue, and every way in which a provider fails.

They run in a thread of their own, so that blocking tests, asynchronous ones and other processes can all talk to them.
"""

import asyncio
import enum
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec
from aiohttp import hdrs, web

from denizen.messages import AssistantMessage, Text
from denizen.testing.wire import ANTHROPIC, OPENAI, RESPONSES, Wire
from denizen.testing.wire_gemini import GEMINI

EVENT_STREAM = "text/event-stream; charset=utf-8"
JSON = "application/json"


class Step(enum.Enum):
    """Events between the bytes of a reply."""

    HOLD = enum.auto()
    """Wait until the test calls `release()`."""
    STALL = enum.auto()
    """Send nothing any more, and keep the connection."""
    HANG_UP = enum.auto()
    """Close the connection."""


@dataclass(frozen=True, slots=True)
class LoopbackRequest:
    """A request as it came."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    query: str = ""

    @property
    def json(self) -> Any:
        """Its body, parsed."""
        return msgspec.json.decode(self.body)


@dataclass(frozen=True, slots=True)
class LoopbackReply:
    """A response: its bytes, each element sent on its own, and what happens between them, or before the status."""

    steps: Sequence[bytes | Step]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class LoopbackServer:
    """A model server; use it as a context manager.

    `requests` are those that came, oldest first; `gone` is set when a client leaves before its reply is over.
    `facts` are what it reports about itself, by path: `{"/v1/models": {"data": […]}}`. What else a
    client asks with GET is answered by a reply that isn't a stream, or else not found. `otherwise` answers the requests
    that no reply is left for; it is called in the server's thread.
    """

    wire: Wire
    _loop: asyncio.AbstractEventLoop
    _over: asyncio.Event
    _released: asyncio.Event

    def __init__(self) -> None:
        self.requests: list[LoopbackRequest] = []
        self.facts: dict[str, Any] = {}
        self.otherwise: Callable[[LoopbackRequest], AssistantMessage | str] | None = None
        self.gone = threading.Event()
        self._clients: set[Any] = set()
        self._replies: deque[LoopbackReply | AssistantMessage] = deque()
        self._releases = 0
        self._port: Future[int] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True, name="loopback")

    @property
    def base_url(self) -> str:
        """The base URL to configure a client with."""
        return f"http://127.0.0.1:{self._port.result()}{self.wire.prefix}"

    @property
    def connections(self) -> int:
        """The number of connections that the requests came over."""
        return len(self._clients)

    # What it replies, in this order

    def say(self, *answers: AssistantMessage | str) -> None:
        """Answer with messages, each streamed or in one piece as its request asks."""
        self._replies.extend(AssistantMessage([Text(each)]) if isinstance(each, str) else each for each in answers)

    def fail(self, status: int, body: Any = None, headers: Mapping[str, str] | None = None) -> None:
        """Answer with a status and a body: bytes, a sentence in the provider's own form, or anything as JSON."""
        if isinstance(body, str):
            body = self.wire.error(status, body)
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        self._replies.append(LoopbackReply([data], status, {hdrs.CONTENT_TYPE: JSON, **(headers or {})}))

    def send(self, *steps: bytes | Step, content_type: str = EVENT_STREAM) -> None:
        """Answer 200 with these bytes, each element sent on its own; `split` makes such elements."""
        self._replies.append(LoopbackReply(steps, 200, {hdrs.CONTENT_TYPE: content_type}))

    def release(self) -> None:
        """Let every reply go on whose request came, past its next `HOLD`: it doesn't matter whether it is there yet."""

        def release() -> None:
            self._releases += 1
            self._released.set()
            self._released = asyncio.Event()

        self._loop.call_soon_threadsafe(release)

    # The server

    def __enter__(self) -> Self:
        self._thread.start()
        self._port.result()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # the top of a thread: whoever waits for the port must hear of it
            if not self._port.done():
                self._port.set_exception(error)
            raise

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over, self._released = asyncio.Event(), asyncio.Event()
        server = web.Server(self._answer, handler_cancellation=True, access_log=None)
        runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._port.set_result(runner.addresses[0][1])
        await self._over.wait()
        await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path in self.facts:
            return web.json_response(self.facts[request.path])
        if (request.method == hdrs.METH_GET and not self._has_plain_reply()) or request.path == "/api/show":
            return web.Response(status=404)
        body = await request.content.read()
        received = LoopbackRequest(request.path, request.headers.copy(), body, request.query_string)
        releases = self._releases
        self.requests.append(received)
        self._clients.add(request.transport and request.transport.get_extra_info("peername"))
        reply = self._replies.popleft() if self._replies else None
        if reply is None and self.otherwise:
            said = self.otherwise(received)
            reply = AssistantMessage([Text(said)]) if isinstance(said, str) else said
        if reply is None:
            body = msgspec.json.encode(self.wire.error(500, "the loopback server has no reply left"))
            reply = LoopbackReply([body], 500, {hdrs.CONTENT_TYPE: JSON})
        elif isinstance(reply, AssistantMessage):
            reply = self._said(reply, received)
        try:
            return await self._send(reply, request, releases)
        except (asyncio.CancelledError, ConnectionError):
            self.gone.set()
            raise

    def _said(self, message: AssistantMessage, request: LoopbackRequest) -> LoopbackReply:
        """A message as the request asks for it; servers that frame it otherwise override this."""
        if self._wants_stream(request):
            return LoopbackReply(self.wire.streamed(message), 200, {hdrs.CONTENT_TYPE: EVENT_STREAM})
        return LoopbackReply([self.wire.whole(message)], 200, {hdrs.CONTENT_TYPE: JSON})

    def _wants_stream(self, request: LoopbackRequest) -> bool:
        return bool(request.json.get("stream"))

    def _has_plain_reply(self) -> bool:
        reply = self._replies[0] if self._replies else None
        return isinstance(reply, LoopbackReply) and reply.status == 200 and reply.headers.get(hdrs.CONTENT_TYPE) == JSON

    async def _send(self, reply: LoopbackReply, request: web.BaseRequest, releases: int) -> web.StreamResponse:
        """Reply to a request that came after so many releases."""
        response = web.StreamResponse(status=reply.status, headers=reply.headers)
        for step in reply.steps:
            if step is Step.HOLD:
                releases += 1
                while self._releases < releases:
                    await self._released.wait()
            elif step is Step.STALL:
                await self._over.wait()
            elif step is Step.HANG_UP:
                if request.transport:
                    request.transport.close()
            else:
                await response.prepare(request)
                await response.write(step)
                await asyncio.sleep(0)
        return response


class LoopbackAnthropic(LoopbackServer):
    """Speaks Anthropic Messages."""

    wire = ANTHROPIC


class LoopbackOpenAI(LoopbackServer):
    """Speaks OpenAI Chat Completions."""

    wire = OPENAI


class LoopbackResponses(LoopbackServer):
    """Speaks OpenAI Responses."""

    wire = RESPONSES


class LoopbackGemini(LoopbackServer):
    """Speaks Gemini's own format."""

    wire = GEMINI

    def _wants_stream(self, request: LoopbackRequest) -> bool:
        return request.path.endswith(":streamGenerateContent")


def split(data: bytes, *sizes: int) -> list[bytes]:
    """The bytes in pieces of these sizes, over and over."""
    pieces: list[bytes] = []
    place = turn = 0
    while place < len(data):
        size = sizes[turn % len(sizes)]
        pieces.append(data[place : place + size])
        place, turn = place + size, turn + 1
    return pieces
