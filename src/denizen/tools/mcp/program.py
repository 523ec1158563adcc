"""A server that is a program: started, spoken with over its standard input and output, and ended."""

import asyncio
import fnmatch
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from denizen.config.settings import McpServer
from denizen.errors import ToolRefused
from denizen.runtime.cancellation import run_to_completion
from denizen.tools.mcp.listing import MAX_MESSAGE_BYTES
from denizen.tools.programs.process import end_program
from denizen.tools.sandbox.sandboxes import supervised
from denizen.trusted.programs import find_program, trusted_environ

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

_PASSED_VARIABLES = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "LANG", "LANGUAGE", "LC_*"),
    *("XDG_*_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
"""Environment variables that every server gets, as patterns."""
_CLOSE_GRACE_S, _END_GRACE_S = 0.5, 10.0
"""Seconds that a server has to end when its input is closed, and when it is told to."""
_MAX_NOISE_LINES = 1000
"""Lines that aren't messages, after which a server is given up."""
_TAIL_BYTES = 1000
"""Bytes of what it wrote last to standard error that are kept."""


class Program:
    """Starts a server's program; `workspace` is its folder unless the settings name one."""

    def __init__(self, settings: McpServer, workspace: Path, environ: Mapping[str, str]) -> None:
        self._settings = settings
        self._folder = workspace / settings.cwd
        passed = {
            name: value
            for name, value in environ.items()
            if any(fnmatch.fnmatchcase(name, p) for p in _PASSED_VARIABLES)
        }
        environ = {"PATH": "/usr/local/bin:/usr/bin:/bin"} | passed | settings.env
        self._environ = trusted_environ(environ, workspace)
        self._workspace = workspace
        self._forget()

    def _forget(self) -> None:
        self._status: int | None = None
        self._noise, self._broken, self._errors = "", "", b""

    def trouble(self) -> str:
        """Signs of trouble from the program itself."""
        words = [self._broken, "" if self._status is None else f"it ended with exit code {self._status}"]
        words += [f"it wrote {self._noise!r}, which isn't a message of MCP"] if self._noise else []
        if said := self._errors.decode(errors="replace").strip():
            words.append(f"its standard error ends with: {said}")
        return "; ".join(filter(None, words))

    @asynccontextmanager
    async def open(self, over: asyncio.Event) -> "AsyncGenerator[TransportStreams]":
        """Run the program meanwhile; `over` is set when it has ended. Raises ToolRefused when it can't be started."""
        import anyio
        from mcp.shared.message import SessionMessage

        self._forget()
        process = await self._start()
        to_us, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        sent, to_it = anyio.create_memory_object_stream[SessionMessage](0)
        assert process.stdin and process.stdout and process.stderr  # noqa: S101, PT018 (they are pipes)
        work = self._read(process.stdout, to_us, over), _write(process.stdin, to_it, over), self._listen(process.stderr)
        tasks = [asyncio.create_task(each) for each in work]
        try:
            yield received, sent
        finally:
            by_itself = over.is_set() and not self._broken
            received.close()
            sent.close()
            await run_to_completion(_end(process, tasks))
            self._status = process.returncode if by_itself else None

    async def _start(self) -> asyncio.subprocess.Process:
        command = self._settings.command
        pipe = asyncio.subprocess.PIPE
        try:
            command = find_program(command, self._environ, self._workspace)
            if not (self._folder / command).is_file():
                raise FileNotFoundError
            return await asyncio.create_subprocess_exec(
                *supervised([command, *self._settings.args]),
                cwd=self._folder,
                env=self._environ,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                start_new_session=True,
                limit=MAX_MESSAGE_BYTES,
            )
        except FileNotFoundError as error:
            raise ToolRefused(
                f"there is no program {command}; install it, or correct the command: name one in the workspace by its "
                "path, because in PATH only folders that commands can't write are searched"
            ) from error
        except (OSError, ValueError) as error:
            raise ToolRefused(f"{command} can't be started in {self._folder}: {error}") from error

    async def _read(
        self,
        output: asyncio.StreamReader,
        to_us: "MemoryObjectSendStream[SessionMessage | Exception]",
        over: asyncio.Event,
    ) -> None:
        """Pass its messages on while somebody listens; what it writes then is read, too, or it couldn't end."""
        import anyio
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        noise = 0
        with to_us:
            try:
                while (line := await output.readline()) and noise < _MAX_NOISE_LINES:
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError:  # servers log there, too
                        self._noise = line[:200].decode(errors="replace").strip() or self._noise
                        noise += 1
                        continue
                    self._noise, noise = "", 0
                    await to_us.send(SessionMessage(message))
            except ValueError:
                self._broken = f"it sent a message of more than {MAX_MESSAGE_BYTES:,} bytes"
            except anyio.BrokenResourceError:
                pass  # nobody listens any more
        over.set()
        while await output.read(65536):
            pass

    async def _listen(self, errors: asyncio.StreamReader) -> None:
        while data := await errors.read(65536):
            self._errors = (self._errors + data)[-_TAIL_BYTES:]


async def _write(
    to: asyncio.StreamWriter, messages: "MemoryObjectReceiveStream[SessionMessage]", over: asyncio.Event
) -> None:
    """Give it the messages, and close its input after the last."""
    try:
        with messages:
            async for message in messages:
                to.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await to.drain()
    except ConnectionError:
        over.set()
    finally:
        to.close()


async def _end(process: asyncio.subprocess.Process, tasks: list[asyncio.Task[None]]) -> None:
    """End it with all that it started, once its input is closed and it didn't end by itself."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_CLOSE_GRACE_S):
            await process.wait()
    with suppress(TimeoutError):  # one that escaped may hold the pipes open
        async with asyncio.timeout(_END_GRACE_S):
            await end_program(process)
    await asyncio.wait(tasks, timeout=_CLOSE_GRACE_S)  # its last words
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
