"""Runs commands in terminals of the editor, where the person sees them, in the same sandbox as elsewhere."""

import asyncio
import fcntl
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import acp
from acp.interfaces import Client
from acp.schema import WaitForTerminalExitResponse

from denizen.config.home import private_folder
from denizen.errors import ConfigError, ToolRefused
from denizen.ports import Sandboxed
from denizen.runtime.cancellation import run_to_completion
from denizen.worlds.code.acp import supervisor

TIMEOUT_S = 10.0
"""For the editor to open a terminal, and to end a command and return its output."""

MAX_OUTPUT_BYTES = 1_000_000
"""The editor keeps the end of a longer output."""

MAX_TITLE_CHARS = 80

_FAILURES = (acp.RequestError, OSError, ValueError)
"""The editor refuses, has gone, or answers in a malformed way."""


class TerminalUnavailableError(Exception):
    """The editor couldn't run the command, which hasn't begun."""


class Terminals:
    """The terminals of the editor, for the commands of one session. `home` is Denizen's own."""

    def __init__(self, client: Client, session_id: str, home: Path) -> None:
        self._client = client
        self._session_id = session_id
        self._home = home

    async def run(
        self,
        command: Sandboxed,
        folder: Path,
        *,
        seconds: float,
        take: Callable[[bytes], None],
        show: Callable[[str, str], Awaitable[None]],
    ) -> int | None:
        """Run a command as `denizen.tools.programs.process.run` does; `take` gets its output at the end.

        `show` gets the id of the terminal and, after the command, the findings of its checks. Raises
        TerminalUnavailableError if the command hasn't begun and can be run elsewhere.
        """
        try:
            file = CommandFile(self._home / "terminals", command, folder)
        except (OSError, ConfigError) as error:
            raise TerminalUnavailableError(str(error)) from error
        creating = asyncio.create_task(self._create(file, command, folder))
        terminal_id, exited, failure, started, is_late = "", None, "", False, False
        try:
            async with asyncio.timeout(seconds):
                async with asyncio.timeout(TIMEOUT_S):
                    terminal_id = await asyncio.shield(creating)
                await show(terminal_id, "")
                exited = await self._client.wait_for_terminal_exit(self._session_id, terminal_id)
        except TimeoutError:
            is_late = True
        except _FAILURES as error:
            failure = str(error)
        finally:
            started = file.close()
            unavailable = not started and (exited or failure or is_late)

            async def conclude() -> None:
                nonlocal terminal_id
                if not terminal_id:
                    with suppress(*_FAILURES):
                        async with asyncio.timeout(TIMEOUT_S):
                            terminal_id = await creating  # the editor may still be making it
                if terminal_id:
                    output = await self._close(terminal_id, exited=exited is not None)
                    take(output if started else b"")
                if command.afterwards and not unavailable and (found := await asyncio.to_thread(command.afterwards)):
                    take(f"{found}\n".encode())
                    if terminal_id:
                        await show(terminal_id, found)

            await run_to_completion(conclude())
        if unavailable:
            raise TerminalUnavailableError(failure or "the command didn't start there")
        if failure:
            raise ToolRefused(f"the editor's terminal failed while the command ran: {failure}")
        return _status(exited) if exited else None

    async def _create(self, file: "CommandFile", command: Sandboxed, folder: Path) -> str:
        title = " ".join(command.argv[-1].split())[:MAX_TITLE_CHARS]
        created = await self._client.create_terminal(
            self._session_id,
            str(Path(sys.executable).resolve()),
            args=["-I", "-S", supervisor.__file__, str(file.path), title],
            cwd=str(folder),
            output_byte_limit=MAX_OUTPUT_BYTES,
        )
        return created.terminal_id

    async def _close(self, terminal_id: str, *, exited: bool) -> bytes:
        """End the command and release the terminal; its output."""
        output = b""
        with suppress(*_FAILURES):
            async with asyncio.timeout(TIMEOUT_S):
                if not exited:
                    await self._kill(terminal_id)
                shown = await self._client.terminal_output(self._session_id, terminal_id)
                output = shown.output.encode(errors="replace")
                if shown.truncated:
                    output = b"[the beginning of the output is lost: the editor keeps its end]\n" + output
        with suppress(*_FAILURES):
            async with asyncio.timeout(TIMEOUT_S):
                await self._client.release_terminal(self._session_id, terminal_id)
        return output

    async def _kill(self, terminal_id: str) -> None:
        """Give the supervisor the time to end all that the command started, then have the editor kill it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(supervisor.GRACE_S):
                await self._client.wait_for_terminal_exit(self._session_id, terminal_id)
        await self._client.kill_terminal(self._session_id, terminal_id)


class CommandFile:
    """A command for `supervisor.py`, which may run it until the file is closed."""

    def __init__(self, folder: Path, command: Sandboxed, workspace: Path) -> None:
        private_folder(folder)
        self.path = folder / f"{os.urandom(8).hex()}.json"
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        what = {"argv": [*command.argv], "environ": {**command.environ}, "folder": str(workspace)}
        with open(os.dup(self._file), "wb") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(json.dumps(what).encode())

    def close(self) -> bool:
        """End the command if it runs, and keep it from starting; whether it had started."""
        fcntl.flock(self._file, fcntl.LOCK_UN)
        os.close(self._file)
        try:
            self.path.unlink()
        except FileNotFoundError:
            return True
        return False


def _status(exited: WaitForTerminalExitResponse) -> int:
    """The exit status as Python reports it: below 0, the signal that ended the command."""
    if exited.exit_code is not None:
        return exited.exit_code
    name = (exited.signal or "").upper().removeprefix("SIG")
    return -next((each for each in signal.Signals if each.name == f"SIG{name}"), signal.SIGKILL)
