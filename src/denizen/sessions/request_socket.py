"""Requests to a session that another process has open, over a Unix socket in the home."""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import msgspec

from denizen.config.home import private_folder
from denizen.errors import ConfigError, DenizenError
from denizen.sessions.key import SessionKey, key_of

MAX_ADDRESS_BYTES = 100
"""The longest socket path, in bytes, that every system accepts."""
MAX_LINE_BYTES = 1 << 24


class SessionRequest(msgspec.Struct, frozen=True):
    """An instruction to a character's session, or a text that it is to `page` a player.

    A repeated `id` gets the same answer and has no other effect.
    """

    id: str
    text: str
    page: str = ""


class SessionNotRunning(DenizenError):
    """No process has the session open and listens for requests."""


class AnswerLost(DenizenError):
    """The process got the request, but ended before it answered."""


def sessions_of(home: Path, channel: str) -> Sequence[SessionKey]:
    """The keys of a channel's sessions in the home."""
    keys = map(key_of, (home / "sessions").glob(f"*/{channel}+*.jsonl"))
    return [SessionKey.parse(key) for key in sorted(filter(None, keys))]


def sessions_named(home: Path, channel: str, name: str) -> Sequence[SessionKey]:
    """A channel's sessions whose agent or account has this name, in any case: those that listen, or else all."""
    keys = [key for key in sessions_of(home, channel) if name.lower() in {key.agent, key.account}]
    return [key for key in keys if _socket(home, str(key)).exists()] or keys


@asynccontextmanager
async def serve_requests(
    home: Path, key: str, answer: Callable[[SessionRequest], Awaitable[str]]
) -> AsyncGenerator[None]:
    """Answer requests to a session that this process has open, until the end of the block."""
    path, tasks = _socket(home, key), set[asyncio.Task[None]]()
    private_folder(path.parent)

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_answer(reader, writer, answer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    try:
        with _address(path) as address:  # replaces the socket of a killed process: only one has the session open
            server = await asyncio.start_unix_server(begin, address, limit=MAX_LINE_BYTES)
        path.chmod(0o600)
    except OSError as error:
        raise ConfigError(f"Can't create the socket {path}: {error}. Move the home to a local disk.") from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        server.close()
        for task in [*tasks]:
            task.cancel()


async def send_request(home: Path, key: str, request: SessionRequest) -> str:
    """Send a request to the process that has the session open, and return its answer.

    Raises SessionNotRunning and AnswerLost.
    """
    try:
        with _address(_socket(home, key)) as address:
            reader, writer = await asyncio.open_unix_connection(address, limit=MAX_LINE_BYTES)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise SessionNotRunning("It isn't running.") from error
    line = b""
    try:
        writer.write(msgspec.json.encode(request) + b"\n")
        with suppress(ConnectionError):
            line = await reader.readline()
    finally:
        writer.close()
    if not line.endswith(b"\n"):
        raise AnswerLost("It ended before it answered.")
    return msgspec.json.decode(line, type=str)


def _socket(home: Path, key: str) -> Path:
    return home / "sockets" / hashlib.sha256(key.encode()).hexdigest()[:32]


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Callable[[SessionRequest], Awaitable[str]]
) -> None:
    try:
        if line := await reader.readline():
            text = await answer(msgspec.json.decode(line, type=SessionRequest))
            writer.write(msgspec.json.encode(text) + b"\n")
            await writer.drain()
    except ConnectionError:  # the client is gone
        pass
    finally:
        writer.close()


@contextmanager
def _address(path: Path) -> Generator[str]:
    """A short path to the socket, because socket addresses are limited in length."""
    if len(os.fsencode(path)) <= MAX_ADDRESS_BYTES:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="denizen-") as folder:
        link = Path(folder, "home")
        link.symlink_to(path.parent)
        yield str(link / path.name)
