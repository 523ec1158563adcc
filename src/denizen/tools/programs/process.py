"""Runs programs: their output as it comes, bounded, and no process left running."""

import asyncio
import codecs
import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from denizen.config.pattern import pattern
from denizen.errors import ToolRefused
from denizen.ports import Sandboxed
from denizen.runtime.cancellation import run_to_completion

_CHUNK_BYTES = 16_384  # bytes read at once
_GRACE_S = 5.0  # seconds that a supervisor has to end what it supervises
_PIPE_GRACE_S = 1.0
"""Seconds that output may still take after the program has ended: a process that escaped may hold the pipe open."""
_ESCAPES = pattern(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


async def run(
    command: Sandboxed,
    folder: Path,
    *,
    seconds: float | None,
    take: Callable[[bytes], None],
    started: Callable[[int], None] | None = None,
) -> int | None:
    """Run a program in `folder`; its exit status (below 0: the signal that ended it), None when its time was over.

    `take` gets what it writes to standard output and error, in the order written; its input is empty. `started` gets
    its process id; with `seconds` None it may take as long as it likes. On return, also when cancelled, the program has
    ended with its process group and what its sandbox or supervisor ends, and its `afterwards` was called. Raises
    ToolRefused when it can't be started.
    """
    with _Output(take) as output:
        try:
            process = await asyncio.create_subprocess_exec(
                *command.argv,
                cwd=folder,
                env=command.environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output.write_end,
                stderr=output.write_end,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:  # not there, too long, or with bytes that no program can be given
            if command.afterwards:
                command.afterwards()
            reason = error.strerror if isinstance(error, OSError) else error
            raise ToolRefused(f"{command.argv[0]} can't be started in {folder}: {reason}") from error
        output.close_write_end()
        if started:
            started(process.pid)

        async def conclude() -> None:
            await end_program(process)
            await output.ended()
            if command.afterwards and (words := await asyncio.to_thread(command.afterwards)):
                take(f"{words}\n".encode())

        try:
            async with asyncio.timeout(seconds):
                return await process.wait()
        except TimeoutError:
            return None
        finally:
            await run_to_completion(conclude())


async def end_program(process: asyncio.subprocess.Process) -> None:
    """End a program: a supervisor or sandbox gets the time to end its own, then what is left is killed."""
    if process.returncode is None:
        process.terminate()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await process.wait()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def output_of(command: Sandboxed, folder: Path, *, seconds: float | None, most: int) -> tuple[int | None, bytes]:
    """Run a program like `run`; its exit status, and the first `most` bytes of what it writes."""
    output = bytearray()

    def take(data: bytes) -> None:
        output.extend(data[: most - len(output)])

    status = await run(command, folder, seconds=seconds, take=take)
    return status, bytes(output)


async def run_python(program: Path, data: bytes, *, seconds: float, most: int) -> tuple[int | None, str]:
    """Run one of our own programs on a file with `data`, without an environment: its exit status and its output."""
    with tempfile.NamedTemporaryFile(prefix="denizen-") as file:
        file.write(data)
        file.flush()
        command = Sandboxed([sys.executable, "-I", str(program), file.name], {})
        status, output = await output_of(command, Path("/"), seconds=seconds, most=most)
    return status, output.decode(errors="replace")


class BoundedOutput:
    """Keeps `most` bytes of an output of any size: its beginning and its end."""

    def __init__(self, most: int) -> None:
        self._most = most // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take in the next bytes."""
        self.total += len(data)
        room = self._most - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._most:
            del self._tail[: -self._most]

    def text(self, hint: str) -> str:
        """The text for people and models; `hint` says how to get what is left out, if anything is."""
        if self.total <= 2 * self._most:
            return plain((self._head + self._tail).decode(errors="replace"))
        head, tail = bytes(self._head), bytes(self._tail[-self._most :])
        # without the cut line between them, or at least without a cut character
        line_end, line_start = head.rfind(b"\n"), tail.find(b"\n") + 1
        head = head[: line_end if line_end > 0 else codecs.utf_8_decode(head, "replace", False)[1]]
        tail = tail[line_start:] if line_start else tail.lstrip(bytes(range(0x80, 0xC0)))
        left_out = self.total - len(head) - len(tail)
        marker = f"\n[… {left_out:,} bytes left out; {hint} …]\n"
        return plain(head.decode(errors="replace")) + marker + plain(tail.decode(errors="replace"))


class LineEmitter:
    """Shows an output as it comes, in whole lines unless they are too long, until `most` characters were shown."""

    def __init__(self, show: Callable[[str], None], most: int) -> None:
        self._show = show
        self._room = most
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._line = ""

    def add(self, data: bytes) -> None:
        """Take in the next bytes; none: that was all."""
        if self._room < 0:
            return
        lines, end, rest = (self._line + self._decoder.decode(data, final=not data)).rpartition("\n")
        self._line = rest
        if not data or len(rest) > _CHUNK_BYTES:
            end, self._line = end + rest, ""
        taken = lines + end
        if len(taken) > self._room:
            taken = f"{taken[: self._room]}\n[more is not shown as it comes]"
        self._room -= len(taken)
        if text := plain(taken):
            self._show(text)


def plain(text: str) -> str:
    """The text without escape sequences of terminals; of a line that was overwritten, its last form."""
    lines = text.replace("\r\n", "\n").split("\n")
    return _ESCAPES.sub("", "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))


class _Output:
    """A pipe, read while the event loop runs."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self._take = take
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()

    def __enter__(self) -> "_Output":
        self._loop.add_reader(self._read_end, self._read)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(self._read_end)
        os.close(self._read_end)
        self.close_write_end()

    def close_write_end(self) -> None:
        """From here on only the program can write."""
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    async def ended(self) -> None:
        """Wait until no process can write any more, or one holds the pipe open for too long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PIPE_GRACE_S):
                await self._over.wait()

    def _read(self) -> None:
        data = os.read(self._read_end, _CHUNK_BYTES)
        if data:
            self._take(data)
        else:
            self._loop.remove_reader(self._read_end)
            self._over.set()
