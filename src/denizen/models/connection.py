"""One HTTP/1.1 connection: a request goes out, its answer comes in.

Straight on asyncio and llhttp (`httptools`): a request costs a third of what a general client takes for it, and what
such a client brings along, nobody here needs: redirects, cookies, proxies and compression are never wanted.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, cast

import httptools

LONGEST_WRITE: Final = 1024 * 1024
"""Bytes that are written before others may run."""

MOST_HELD: Final = 1024 * 1024
"""Bytes of an answer that may wait to be read; while there are more, the server has to wait. Headers are shorter."""

LONGEST_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of an answer that is read whole."""

AT_ONCE: Final = 2.0
"""Seconds within which a request over a connection that the server had closed is refused."""


class Connection(asyncio.Protocol):
    """A connection that was opened; use it for one exchange after another.

    `status` and `headers` (their names in lower case) are those of the last answer; `ended`: it has come whole. What
    breaks is raised by whoever waits for it, as an OSError: the connection can't be used any more then.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.ended = True
        self.idle_since = 0.0
        self._loop = asyncio.get_running_loop()
        self._pieces: list[bytes] = []
        self._held = 0  # bytes since the last were taken
        self._begun = False  # its headers are complete
        self._closes = False  # it can't be used for another exchange
        self._error: OSError | None = None
        self._news: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None  # while the operating system takes no more
        self._silence = 0.0
        self._heard = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self.on_body = self._pieces.append  # the parser calls it for every chunk
        self._parser = httptools.HttpResponseParser(self)
        # small servers end a line with LF alone, old ones fill up the size of a chunk
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True)
        self._transport: asyncio.Transport

    @property
    def reusable(self) -> bool:
        """Whether another request may be sent."""
        return self.ended and not self._closes and not self._transport.is_closing()

    @property
    def lapsed(self) -> bool:
        """Whether it broke at once, after an earlier exchange and without a byte of an answer: the server had closed it
        while nobody used it, and doesn't know of the request.
        """
        at_once = self._loop.time() - self._heard < AT_ONCE
        return bool(self.status and self._error) and not self._held and at_once

    async def send(self, head: bytes, body: Sequence[bytes], silence: float) -> None:
        """Send a request, and return when `status` and `headers` of its answer are there.

        `silence`: seconds without a byte, until the answer has ended, after which the connection has died.
        """
        if self._held:  # the end of the last answer, which nobody read
            self._take()
        self.ended = self._begun = False
        self._heard, self._silence = self._loop.time(), silence
        if self._watch is None or self._watch.when() > self._heard + silence:
            self._look_again(silence)
        await self._write(head, body)
        while not self._begun:
            await self._wait()
        if self.status == 200 and (coding := self.headers.get("content-encoding", "identity")) != "identity":
            raise ConnectionError(f"its answer is compressed ({coding}), which it was asked not to do")

    async def read(self) -> bytes:
        """All that is left of the answer."""
        if self.ended:
            return self._take()
        whole = bytearray()
        while data := await self.read_some():
            whole += data
            if len(whole) > LONGEST_ANSWER:
                raise ConnectionError(f"its answer is longer than {LONGEST_ANSWER >> 20} MB")
        return bytes(whole)

    async def read_some(self) -> bytes:
        """What has come of the answer since the last time, once something has; nothing: it has ended."""
        while not self._pieces and not self.ended:
            await self._wait()
        return self._take()

    def close(self) -> None:
        """Close it, whatever is under way."""
        if self._watch:
            self._watch.cancel()
        self._transport.abort()

    async def _write(self, head: bytes, body: Sequence[bytes]) -> None:
        """Write in as few pieces as possible: each is a system call, but copying what is large costs more."""
        if sum(map(len, body)) <= LONGEST_WRITE // 4:
            self._transport.write(b"".join((head, *body)))
            return
        for piece in (head + body[0], *body[1:]):
            view = memoryview(piece)
            for start in range(0, len(view), LONGEST_WRITE):
                if self._room:
                    await self._room
                if self._begun or self._error:  # it answers, or breaks, before it has heard all
                    self._closes = True
                    return
                self._heard = self._loop.time()
                self._transport.write(view[start : start + LONGEST_WRITE])

    async def _wait(self) -> None:
        if self._error:
            raise self._error
        self._news = self._loop.create_future()
        try:
            await self._news
        finally:
            self._news = None

    def _take(self) -> bytes:
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        if self._held > MOST_HELD:
            self._heard = self._loop.time()
            self._transport.resume_reading()
        self._held = 0
        return data

    def _hold(self) -> None:
        """Have the server wait until what has come is read; without a body there is nothing to read."""
        if self._pieces or self.ended:
            self._transport.pause_reading()
        else:
            self._fail(ConnectionError(f"its headers are longer than {MOST_HELD >> 20} MB"))

    def _look_again(self, seconds: float) -> None:
        if self._watch:
            self._watch.cancel()
        self._watch = self._loop.call_later(seconds, self._look)

    def _look(self) -> None:
        """Whether the server is silent for too long. It looks seldom: to set a clock for each byte would cost more."""
        self._watch = None
        if self.ended:
            return
        silent_for = 0.0 if self._held > MOST_HELD else self._loop.time() - self._heard
        if silent_for < self._silence:
            self._look_again(self._silence - silent_for)
        else:
            self._fail(TimeoutError(f"nothing came for {self._silence:g} s"))

    def _fail(self, error: OSError) -> None:
        self._error = self._error or error
        self.close()
        self._wake()

    def _wake(self) -> None:
        if self._news and not self._news.done():
            self._news.set_result(None)

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self.ended:
            self._fail(ConnectionError("it spoke before it was asked"))
            return
        self._heard = self._loop.time()
        self._held += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(ConnectionError(f"its answer is not HTTP: {error}"))
        except httptools.HttpParserUpgrade:
            self._fail(ConnectionError("it switched to another protocol"))
        else:
            if self._held > MOST_HELD:
                self._hold()
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._begun and not (exc or self._error or {"content-length", "transfer-encoding"} & self.headers.keys()):
            self.ended = True  # such an answer ends with its connection
        self._closes = True
        self._fail(exc if isinstance(exc, OSError) else ConnectionResetError("the server closed the connection"))
        self.resume_writing()

    def pause_writing(self) -> None:
        self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._room and not self._room.done():
            self._room.set_result(None)
        self._room = None

    # What the parser tells

    def on_message_begin(self) -> None:
        if self.ended:
            raise ValueError("a second answer came with the one that was asked for")
        self.headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._begun:  # what follows a body (trailers) changes nothing
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1").rstrip()

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        self._begun = self.status >= 200  # before it come remarks, like 103 Early Hints
        if self._begun and self._room:  # it answers before it has taken all, and may never take the rest
            self._closes = True
            self.resume_writing()

    def on_message_complete(self) -> None:
        if self._begun:
            self.ended = True
            self._closes |= not self._parser.should_keep_alive()
