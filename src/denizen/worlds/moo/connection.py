"""A player's connection to a world: commands go out one at a time, and all that others say and do comes in."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self

import msgspec

from denizen.worlds.moo.attribution import Attribution, OutputTiming
from denizen.worlds.moo.lines import LineReader, Markers, Passage
from denizen.worlds.moo.negotiation import Negotiator, gmcp_said, server_status
from denizen.worlds.moo.quoting import one_line
from denizen.worlds.moo.server_text import CommandOutput, Room, ServerLine
from denizen.worlds.moo.sign_in import asks_for, refusal
from denizen.worlds.moo.speech import message_of
from denizen.worlds.moo.telnet import Event, Option, PromptMark, Subnegotiation, TelnetParser, TelnetText
from denizen.worlds.moo.token_pages import avatar
from denizen.worlds.moo.transport import Server, ServerUnreachable, Stream, address_of, open_stream

WRAP_COLUMNS = 80
"""Columns at which DjangoMOO wraps, whatever the window's size."""
MAX_SETUP_ATTEMPTS = 3
"""The most attempts to set the delimiters."""
_READ_BYTES = 1 << 16
_QUIT_TIMEOUT_S = 3.0
_CLOSED = "not sent, or not answered: the connection is closed"
_STUCK = "not sent: the server hasn't answered the command before, so the connection is given up"
_ASKED = "it asked something that only a person at a terminal can answer, and was cancelled"
_CANCEL = b"\x03"


class LineQueue:
    """The lines that no command asked for, in order, until the connection is over. Waiting may be cancelled."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[ServerLine | None] = asyncio.Queue()

    def put(self, line: ServerLine | None) -> None:
        """Add one; None: there will be no more."""
        self._queue.put_nowait(line)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ServerLine:
        if (line := await self._queue.get()) is None:
            self.put(None)
            raise StopAsyncIteration
        return line


class MooConnection:
    """Signed in; `connected` makes one. Once it is lost, `request` answers at once with a problem, and `lines` end."""

    def __init__(self, stream: Stream, server: Server, timing: OutputTiming) -> None:
        self.lines = LineQueue()
        self.gmcp: dict[str, Any] = {}
        """The last value of each package."""
        self.status: dict[str, str] = {}
        """The server's own description (MSSP)."""
        self.is_lost = False
        self._stream, self._server, self._timing = stream, server, timing
        session = secrets.token_hex(4)
        self._markers = Markers(*(f">>MOO-{word}-{session}<<" for word in ("START", "END", "OWN-START", "OWN-END")))
        self._parser, self._negotiator = TelnetParser(), Negotiator()
        self._reader = LineReader(self._markers)
        self._attribution = Attribution(timing)
        self._attribution.name = avatar(server.user)
        self._one_at_a_time = asyncio.Lock()
        self._news = asyncio.Event()
        self._heard_at = 0.0
        self._has_cancelled = False

    @property
    def room(self) -> Room | None:
        """The agent's room, if the server sent it."""
        return self._attribution.room

    @property
    def names_talkers(self) -> bool:
        """Whether the server names the talker of all that others say: a line without one is the world's."""
        return self._attribution.names_talkers

    @property
    def name(self) -> str:
        """The name that others see; the user's name unless the server sends another."""
        return self._attribution.name

    async def request(self, command: str) -> CommandOutput:
        """Send one command, and give its output once it is whole. Those of other callers wait their turn.

        Line breaks in it become spaces. A time-out or a lost connection is the output's `problem`.
        """
        async with self._one_at_a_time:
            command = one_line(command)
            if self._attribution.owed and not self.is_lost:
                await self._wait(lambda: not self._attribution.owed, self._timing.timeout)
            if self._attribution.owed:
                self._stream.writer.close()
            if self._attribution.owed or self.is_lost:
                return CommandOutput(command, problem=_CLOSED if self.is_lost else _STUCK)
            self._attribution.sent(command, self._now)
            self._write(f"{command}\n".encode(errors="replace"))
            return await self._output()

    async def _output(self) -> CommandOutput:
        """The output of the command in flight."""
        try:
            await self._wait(lambda: bool(self._attribution.outputs))
        except asyncio.CancelledError:
            self._attribution.abandon()
            self._publish()
            raise
        return self._attribution.outputs.popleft()

    async def _wait(self, ready: Callable[[], bool], seconds: float | None = None) -> None:
        """Let time and data come until it is so, or the time is over."""
        latest = None if seconds is None else self._now + seconds
        while not ready() and not (latest is not None and latest <= self._now):
            self._news.clear()
            due = min((time for time in (latest, self._next_due) if time is not None), default=None)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._news.wait()
            self._pass_time()

    async def receive(self) -> None:
        """Take what comes until the server closes."""
        try:
            while True:
                limit = asyncio.timeout_at(self._next_due)
                try:
                    async with limit:
                        data = await self._stream.reader.read(_READ_BYTES)
                except Exception:  # noqa: BLE001 - cut off, the same as closed; asyncssh says that in errors of its own
                    if not limit.expired():
                        break
                    self._pass_time()
                    continue
                if not data:
                    break
                self._take(data)
        finally:
            self._lose()

    def _write(self, data: bytes) -> None:
        with suppress(OSError):  # closed a moment ago: `receive` is about to hear of it
            self._stream.writer.write(data)

    def _take(self, data: bytes) -> None:
        self._heard_at = self._now
        for event in self._parser.feed(data):
            if reply := self._negotiator.answer(event):
                self._write(reply)
            self._event(event)
            if self._attribution.is_signing_in and self._attribution.echoes and not isinstance(event, TelnetText):
                self._attribution.marks_prompts = True  # over SSH, only DjangoMOO speaks telnet
        if self._reader.is_at_prompt and not self._attribution.marks_prompts:
            self._passages(self._reader.prompt())
            self._attribution.prompt(self._now, is_marked=False)
        self._publish()

    def _event(self, event: Event) -> None:
        match event:
            case TelnetText(data):
                self._passages(self._reader.feed(data))
                if self._attribution.frames and self._reader.holds_question and not self._has_cancelled:
                    self._has_cancelled = True
                    self._write(_CANCEL)
                    self._attribution.trouble(_ASKED)
            case PromptMark():
                self._has_cancelled = False
                is_prompt = self._attribution.frames or bool(self._reader.tail)
                self._passages(self._reader.prompt())
                if is_prompt:  # some servers mark the end of each message
                    self._attribution.prompt(self._now)
            case Subnegotiation(Option.MSSP):
                self.status |= server_status(event)
            case Subnegotiation(Option.GMCP) if said := gmcp_said(event):
                self.gmcp[said.package] = said.value
                self._note(said.package, said.value)

    def _note(self, package: str, value: Any) -> None:
        """Take in GMCP values about the agent, its room and what others say."""
        if package == "Comm.Channel.Text" and (message := message_of(value)):
            self._attribution.message(message, self._now)
        elif package == "Char.Name" and isinstance(value, dict):
            self._attribution.name = str(value.get("name") or self.name)
        elif package == "Room.Info":
            with suppress(msgspec.ValidationError):
                self._attribution.room = msgspec.convert(value, Room, strict=False)

    def _passages(self, passages: Iterable[Passage]) -> None:
        for passage in passages:
            self._attribution.passage(passage, self._now)

    @property
    def _next_due(self) -> float | None:
        times = [self._attribution.next_due]
        if self._reader.holds_line or (self._reader.holds_text and not self._attribution.marks_prompts):
            times.append(self._heard_at + self._timing.quiet)
        return min((time for time in times if time is not None), default=None)

    def _pass_time(self) -> None:
        if self._heard_at + self._timing.quiet <= self._now:
            marked, tail = self._attribution.marks_prompts, self._reader.tail
            self._passages(self._reader.settle() if marked else self._reader.quiet())
            if tail and not marked:
                self._attribution.prompt(self._now, is_marked=False)
        self._attribution.pass_time(self._now)
        self._publish()

    def _publish(self) -> None:
        """Hand on what has been decided."""
        lines = self._attribution.lines
        while lines:
            self.lines.put(lines.popleft())
        self._news.set()

    def _lose(self) -> None:
        self.is_lost = True
        self._passages(self._reader.quiet())
        self._attribution.end(_CLOSED)
        self._publish()
        self.lines.put(None)

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sign_in(self) -> None:
        """Wait for the first prompt, sign in where the server asks for it, and set the session up.

        What the server says meanwhile are the first `lines`. Raises ServerUnreachable when it doesn't come that far,
        and ConfigError when it refuses.
        """
        server, attribution = self._server, self._attribution
        attribution.echoes, attribution.is_signing_in = server.transport == "ssh", True
        attribution.sent("", self._now)
        outputs = [await self._output()]
        for line in server.login if server.transport != "ssh" or asks_for(server.login, outputs[0].lines) else ():
            outputs += [await self.request(line.format(user=server.user, password=server.password))]
        answers = [line for output in outputs[1:] for line in output.lines]
        if why := refusal(server, answers):
            raise why
        said = [*self._stream.greeting.splitlines(), *outputs[0].lines, *answers]
        unnamed = "DjangoMOO" if server.transport == "ssh" and attribution.marks_prompts else ""
        if self.status.get("CODEBASE", unnamed) == "DjangoMOO":
            outputs += [await self._set_up()]
        if problem := next((output.problem for output in outputs if output.problem), ""):
            last = next((f" It said: “{line}”" for line in reversed(said) if line), "")
            raise ServerUnreachable(f"{address_of(server)} didn't let us in: {problem}.{last}")
        attribution.is_signing_in = False
        secret = server.password or "\0"
        attribution.tell(line.replace(secret, "***") for line in said if any(map(str.isalnum, line)))
        self._publish()

    async def _set_up(self) -> CommandOutput:
        """Have output framed. The settings take effect some time after their prompt: so until markers arrive."""
        markers, look = self._markers, CommandOutput("")
        settings = f"OUTPUTPREFIX {markers.start}; OUTPUTSUFFIX {markers.end}; PREFIX {markers.printed}"
        for _ in range(MAX_SETUP_ATTEMPTS):
            await self.request(f"a11y quiet on; {settings}; SUFFIX {markers.printed_end}")
            self._reader.markers_seen.clear()
            look = await self.request("look")
            if look.problem or len(self._reader.markers_seen) == len(msgspec.structs.fields(Markers)):
                self._attribution.frames, self._reader.columns = True, WRAP_COLUMNS
                self._attribution.proves |= Option.GMCP in self._negotiator.theirs
                break
        return look

    async def leave(self) -> None:
        """Say `@quit`, without which the server keeps the session for a while, and wait for its end."""
        if self.is_lost:
            return
        self._attribution.abandon()
        self._write(b"@quit\n")
        await self._wait(lambda: self.is_lost, _QUIT_TIMEOUT_S)


@asynccontextmanager
async def connected(server: Server, home: Path, timing: OutputTiming | None = None) -> AsyncGenerator[MooConnection]:
    """Sign in, for as long as the context lasts. Raises what `open_stream` does, and ServerUnreachable."""
    async with open_stream(server, home) as stream:
        connection = MooConnection(stream, server, timing or OutputTiming())
        receiving = asyncio.create_task(connection.receive())
        try:
            await connection.sign_in()
            yield connection
        finally:
            await connection.leave()
            receiving.cancel()
            await asyncio.wait([receiving])
