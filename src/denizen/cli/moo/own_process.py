"""An agent that plays in a process of its own: what it tells comes as lines of JSON, instructions go to its input."""

import asyncio
import os
import stat
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec

from denizen.cli.main import WRONG_USE
from denizen.cli.output import write_json
from denizen.errors import ConfigError, DenizenError
from denizen.worlds.moo.listener import Facts, Kind, Status
from denizen.worlds.moo.live import run_until_stopped
from denizen.worlds.moo.supervisor import Seat

LEAVE_TIMEOUT_S = 30.0
"""Seconds that an agent has to leave the world."""
_MAX_LINE_BYTES = 1 << 24


class LineMessage(msgspec.Struct, frozen=True, tag="line"):
    """Something was seen, said or done."""

    kind: Kind
    text: str


class StatusMessage(msgspec.Struct, frozen=True, tag="status"):
    """The agent is doing something else."""

    status: Status


class FactsMessage(msgspec.Struct, frozen=True, tag="facts"):
    """The agent knows something new."""

    facts: Facts


class JsonListener:
    """Prints what happens as JSON, a line each."""

    def line(self, kind: Kind, text: str) -> None:
        """Print a line."""
        write_json(LineMessage(kind, text))

    def status(self, status: Status) -> None:
        """Print what the agent does."""
        write_json(StatusMessage(status))

    def facts(self, facts: Facts) -> None:
        """Print what it knows."""
        write_json(FactsMessage(facts))


@asynccontextmanager
async def taking_instructions(instruct: Callable[[str], None], stop: asyncio.Event) -> AsyncGenerator[None]:
    """Take instructions from standard input meanwhile, if that is a pipe; its end stops the agent."""
    mode = os.fstat(0).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        yield
        return
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )

    async def read() -> None:
        async for line in reader:
            instruct(line.decode(errors="replace").strip())
        stop.set()

    reading = asyncio.create_task(read())
    try:
        yield
    finally:
        reading.cancel()
        transport.close()


async def play_in_own_process(seat: Seat, options: Sequence[str], stop: asyncio.Event) -> None:
    """Let the agent of a directory play in a process of its own, which leaves the world once it is to stop.

    Raises ConfigError if the user must act, and DenizenError where the process ended otherwise.
    """
    command = [sys.executable, "-P", "-m", "denizen", "moo", "run", "--json", *options, str(seat.folder.path)]
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=_MAX_LINE_BYTES, start_new_session=True
    )
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        raise AssertionError("they are pipes")
    seat.instruct = lambda text: stdin.write(f"{text}\n".encode())
    try:
        hearing = asyncio.create_task(_relay_output(stdout, seat))
        words = asyncio.create_task(_relay_errors(stderr, seat))
        await run_until_stopped(stop, asyncio.wait([hearing, words]))
        stdin.close()
        await _end(process)
        await hearing
        last = await words
    finally:
        if process.returncode is None:
            process.kill()
    if not stop.is_set() or process.returncode:
        why = last or f"Its process ended with status {process.returncode}."
        raise (ConfigError if process.returncode == WRONG_USE else DenizenError)(why)


async def _end(process: Process) -> None:
    try:
        async with asyncio.timeout(LEAVE_TIMEOUT_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def _relay_output(stdout: asyncio.StreamReader, seat: Seat) -> None:
    """Pass on what the process tells."""
    decoder = msgspec.json.Decoder(LineMessage | StatusMessage | FactsMessage)
    async for line in stdout:
        match decoder.decode(line):
            case LineMessage(kind, text):
                seat.line(kind, text)
            case StatusMessage(status):
                seat.status(status)
            case FactsMessage(facts):
                seat.facts(facts)


async def _relay_errors(stderr: asyncio.StreamReader, seat: Seat) -> str:
    """Show what it says on standard error; the last of that."""
    last = ""
    async for line in stderr:
        last = line.decode(errors="replace").strip().removeprefix("error: ")
        seat.line("system", last)
    return last
