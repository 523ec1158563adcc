"""Reaches a session that another process holds: its holder answers requests on a socket in the home."""

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
"""Bytes of a socket's path that every system takes."""
MAX_LINE_BYTES = 1 << 24


class SessionRequest(msgspec.Struct, frozen=True):
    """An instruction to a character's session, or a text for it to `page` a player with.

    One with an `id` that was there before has the same answer, and no other effect.
    """

    id: str
    text: str
    page: str = ""


class NotListening(DenizenError):
    """No process that holds the session listens for requests."""


class AnswerLost(DenizenError):
    """The process got the request, and ended before it answered."""


def sessions_of(home: Path, channel: str) -> Sequence[SessionKey]:
    """The keys of a channel's sessions in the home."""
    keys = map(key_of, (home / "sessions").glob(f"*/{channel}+*.jsonl"))
    return [SessionKey.parse(key) for key in sorted(filter(None, keys))]


def sessions_named(home: Path, channel: str, name: str) -> Sequence[SessionKey]:
    """A channel's sessions whose agent or account has this name, in any case: those that listen, or else all."""
    keys = [key for key in sessions_of(home, channel) if name.lower() in {key.agent, key.account}]
    return [key for key in keys if _socket(home, str(key)).exists()] or keys


@asynccontextmanager
async def answering(home: Path, key: str, answer: Callable[[SessionRequest], Awaitable[str]]) -> AsyncGenerator[None]:
    """Answer requests to a session that this process holds, until the end of the block."""
    path, tasks = _socket(home, key), set[asyncio.Task[None]]()
    private_folder(path.parent)

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_answer(reader, writer, answer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    try:
        with _address(path) as address:  # a socket there is that of a process that was killed: this one has the session
            server = await asyncio.start_unix_server(begin, address, limit=MAX_LINE_BYTES)
        path.chmod(0o600)
    except OSError as error:
        raise ConfigError(f"{path} can't become a socket. Move the home to a local disk. ({error})") from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        server.close()
        for task in [*tasks]:
            task.cancel()


async def request_answer(home: Path, key: str, request: SessionRequest) -> str:
    """The answer of the process that holds a session. Raises NotListening and AnswerLost."""
    try:
        with _address(_socket(home, key)) as address:
            reader, writer = await asyncio.open_unix_connection(address, limit=MAX_LINE_BYTES)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise NotListening("It isn't running.") from error
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
    except ConnectionError:  # who asked is gone
        pass
    finally:
        writer.close()


@contextmanager
def _address(path: Path) -> Generator[str]:
    """A short path to a socket, for addresses that don't take a long one."""
    if len(os.fsencode(path)) <= MAX_ADDRESS_BYTES:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="denizen-") as folder:
        link = Path(folder, "home")
        link.symlink_to(path.parent)
        yield str(link / path.name)
