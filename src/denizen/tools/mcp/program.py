"""A server that is a program: started, spoken with over its standard input and output, and ended."""

import asyncio
import fnmatch
import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from denizen.cancellation import run_to_completion
from denizen.config.settings import McpServer
from denizen.errors import ToolRefused
from denizen.tools.mcp.pins import MOST_BYTES
from denizen.tools.programs.process import end_program
from denizen.tools.sandbox.sandboxes import supervised

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

_PASSED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_*"),
    *("XDG_*_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
"""Environment variables that every server gets, as patterns."""
_GRACE, _END = 0.5, 10.0
"""Seconds that a server has to end when its input is closed, and when it is told to."""
_MOST_NOISE = 1000
"""Lines that are no messages, after which a server is given up."""
_TAIL = 1000
"""Bytes of what it wrote last to standard error that are kept."""


class Program:
    """Starts a server's program; `workspace` is its folder unless the settings name one."""

    def __init__(self, settings: McpServer, workspace: Path, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._folder = workspace / settings.cwd
        passed = {name: value for name, value in environ.items() if any(fnmatch.fnmatchcase(name, p) for p in _PASSED)}
        self._environ = {"PATH": "/usr/local/bin:/usr/bin:/bin"} | passed | settings.env
        self._status: int | None = None
        self._noise, self._broken, self._errors = "", "", b""

    def trouble(self) -> str:
        """What the program itself shows of what is wrong."""
        words = [self._broken, "" if self._status is None else f"it ended with exit code {self._status}"]
        words += [f"it wrote {self._noise!r}, which is no message of MCP"] if self._noise else []
        if said := self._errors.decode(errors="replace").strip():
            words.append(f"its standard error ends with: {said}")
        return "; ".join(filter(None, words))

    @asynccontextmanager
    async def open(self, over: asyncio.Event) -> "AsyncGenerator[TransportStreams]":
        """Run the program meanwhile; `over` is set when it has ended. Raises ToolRefused when it can't be started."""
        import anyio
        from mcp.shared.message import SessionMessage

        self._status = None
        self._noise, self._broken, self._errors = "", "", b""
        process = await self._start()
        to_us, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        sent, to_it = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [
            asyncio.create_task(self._read(process, to_us, over)),
            asyncio.create_task(self._write(process, to_it, over)),
            asyncio.create_task(self._listen(process)),
        ]
        try:
            yield received, sent
        finally:
            by_itself = over.is_set() and not self._broken
            await run_to_completion(_end(process, tasks))
            self._status = process.returncode if by_itself else None
            for stream in (to_us, received, sent, to_it):
                stream.close()

    async def _start(self) -> asyncio.subprocess.Process:
        command = self._settings.command
        if not shutil.which(command, path=self._environ["PATH"]) and not (self._folder / command).is_file():
            raise ToolRefused(f"there is no program {command}; install it, or correct the command")
        try:
            return await asyncio.create_subprocess_exec(
                *supervised([command, *self._settings.args]),
                cwd=self._folder,
                env=self._environ,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=MOST_BYTES,
            )
        except (OSError, ValueError) as error:
            raise ToolRefused(f"{command} can't be started in {self._folder}: {error}") from error

    async def _read(
        self,
        process: asyncio.subprocess.Process,
        to_us: "MemoryObjectSendStream[SessionMessage | Exception]",
        over: asyncio.Event,
    ) -> None:
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        noise = 0
        assert process.stdout  # noqa: S101 (it is a pipe)
        try:
            while (line := await process.stdout.readline()) and noise < _MOST_NOISE:
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:  # servers log there, too
                    self._noise = line[:200].decode(errors="replace").strip() or self._noise
                    noise += 1
                    continue
                self._noise, noise = "", 0
                await to_us.send(SessionMessage(message))
        except ValueError:
            self._broken = f"it sent a message of more than {MOST_BYTES:,} bytes"
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass  # nobody listens any more
        finally:
            to_us.close()
            over.set()

    async def _write(
        self,
        process: asyncio.subprocess.Process,
        to_it: "MemoryObjectReceiveStream[SessionMessage]",
        over: asyncio.Event,
    ) -> None:
        assert process.stdin  # noqa: S101 (it is a pipe)
        try:
            async for message in to_it:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(f"{text}\n".encode())
                await process.stdin.drain()
        except ConnectionError:
            over.set()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr  # noqa: S101 (it is a pipe)
        while data := await process.stderr.read(65536):
            self._errors = (self._errors + data)[-_TAIL:]


async def _end(process: asyncio.subprocess.Process, tasks: list[asyncio.Task[None]]) -> None:
    """Close its input, then end it with all that it started; what it still writes is dropped, or it couldn't end."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 (they are pipes)
    process.stdin.close()
    drains = [asyncio.create_task(_drain(stream)) for stream in (process.stdout, process.stderr)]
    with suppress(TimeoutError):
        async with asyncio.timeout(_GRACE):
            await process.wait()
    with suppress(TimeoutError):  # one that escaped may hold the pipes open
        async with asyncio.timeout(_END):
            await end_program(process)
    for drain in drains:
        drain.cancel()
    await asyncio.wait(drains)


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(65536):
        pass
