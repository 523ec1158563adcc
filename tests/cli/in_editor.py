"""An editor, as the protocol's own client library makes one."""

import asyncio
import fcntl
import os
import pty
import signal
import termios
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import acp
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    CreateTerminalResponse,
    DeclineElicitationResponse,
    DeniedOutcome,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
)

Connect = Callable[..., Any]


class Editor:
    """A client that keeps what it is sent, and answers every request for permission with `option`.

    `answer` is what its user fills into a form; None: they decline.
    """

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.asked: list[Any] = []
        self.questions: list[str] = []
        self.option: str | None = "once"
        self.answer: str | None = None
        self.spoken = asyncio.Event()
        self.on_update: Callable[[Any], None] = lambda update: None

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self.on_update(update)
        if update.session_update == "agent_message_chunk":
            self.spoken.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append(tool_call)
        self.updates.append(tool_call)
        outcome = (
            AllowedOutcome(outcome="selected", option_id=self.option)
            if self.option
            else DeniedOutcome(outcome="cancelled")
        )
        return RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.questions.append(message)
        if self.answer is None:
            return DeclineElicitationResponse(action="decline")
        return AcceptElicitationResponse(action="accept", content={"answer": self.answer})

    def on_connect(self, conn: Any) -> None:
        pass

    def of(self, kind: str) -> list[Any]:
        return [update for update in self.updates if getattr(update, "session_update", "request") == kind]

    @property
    def said(self) -> str:
        return "".join(update.content.text for update in self.of("agent_message_chunk"))

    @property
    def thoughts(self) -> str:
        return "".join(update.content.text for update in self.of("agent_thought_chunk"))


async def prompt(agent: Any, session: str, text: str) -> Any:
    return await agent.prompt(session_id=session, prompt=[acp.text_block(text)])


class EditorWithBuffers(Editor):
    """An editor with files open: `buffers` are their texts by path, which only the editor itself changes. Unless it
    `saves`, what it is given is in its buffers only.

    As in some real editors, a buffer isn't reloaded when its file changes.
    """

    def __init__(self, buffers: Mapping[Path, str]) -> None:
        super().__init__()
        self.buffers = {str(path): text for path, text in buffers.items()}
        self.written: list[str] = []
        self.saves = True

    async def read_text_file(self, path: str, session_id: str, **_: Any) -> ReadTextFileResponse:
        text = self.buffers.get(path)
        return ReadTextFileResponse(content=Path(path).read_text() if text is None else text)

    async def write_text_file(self, content: str, path: str, session_id: str, **_: Any) -> None:
        self.written.append(path)
        self.buffers[path] = content
        if self.saves:
            Path(path).write_text(content)


class Terminal:
    """A pseudo-terminal in which a program runs."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.output = b""
        self._screen, self.program_end = pty.openpty()
        self._closed = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._screen, self._read)

    async def start(self, argv: list[str], environ: Mapping[str, str], cwd: str) -> None:
        end = self.program_end
        self.program = await asyncio.create_subprocess_exec(
            *argv,
            stdin=end,
            stdout=end,
            stderr=end,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(end, termios.TIOCSCTTY, 0),
            env=environ,
            cwd=cwd,
        )
        os.close(end)

    async def ended(self) -> int:
        await self._closed.wait()
        return await self.program.wait()

    def _read(self) -> None:
        try:
            self.output += os.read(self._screen, 65536)
        except OSError:  # nobody has the other end open any more
            asyncio.get_running_loop().remove_reader(self._screen)
            os.close(self._screen)
            self._closed.set()


class EditorWithTerminals(Editor):
    """An editor that runs commands in terminals, with the environment that it was started with.

    `calls` are the requests for terminals, by the name of their method.
    """

    def __init__(self, **environ: str) -> None:
        super().__init__()
        self.environ = {**os.environ, **environ}
        self.terminals: dict[str, Terminal] = {}
        self.calls: list[str] = []
        self.created: list[list[str]] = []
        self.released: dict[str, Terminal] = {}

    @property
    def terminal(self) -> Terminal:
        """The only one there has been."""
        (found,) = [*self.terminals.values(), *self.released.values()]
        return found

    async def create_terminal(self, command: str, args: list[str], cwd: str, **more: Any) -> CreateTerminalResponse:
        self.calls.append("create")
        self.created.append([command, *args])
        terminal_id = f"terminal-{len(self.created)}"
        terminal = self.terminals[terminal_id] = Terminal(more["output_byte_limit"])
        await terminal.start([command, *args], self.environ, cwd)
        return CreateTerminalResponse(terminal_id=terminal_id)

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **_: Any) -> WaitForTerminalExitResponse:
        self.calls.append("wait")
        code = await self.terminals[terminal_id].ended()
        if code < 0:
            return WaitForTerminalExitResponse(signal=signal.Signals(-code).name)
        return WaitForTerminalExitResponse(exit_code=code)

    async def terminal_output(self, session_id: str, terminal_id: str, **_: Any) -> TerminalOutputResponse:
        self.calls.append("output")
        terminal = self.terminals[terminal_id]
        text = terminal.output[-terminal.limit :].decode(errors="replace")
        return TerminalOutputResponse(output=text, truncated=len(terminal.output) > terminal.limit)

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        self.calls.append("kill")
        if (program := self.terminals[terminal_id].program).returncode is None:
            program.kill()

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> None:
        self.calls.append("release")
        self.released[terminal_id] = self.terminals.pop(terminal_id)
        await self.released[terminal_id].ended()
