"""A socket to a server: SSH, telnet, or telnet over TLS, as a stream of bytes either way."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from denizen.config.extras import how_to_install
from denizen.errors import ConfigError, DenizenError
from denizen.worlds.moo.quoting import one_line

KEEP_ALIVE_S, MAX_UNANSWERED_KEEP_ALIVES = 15, 3
"""Seconds between two signs of life over SSH, and how many may have no answer."""
TERM = "xterm-256-basic"
"""The terminal for which DjangoMOO writes plain lines with telnet commands."""
_CONNECT_TIMEOUT_S = 30.0
_TRUST = "If you trust that server, set SSL_CERT_FILE to a file with its certificate or its authority's."


class ServerUnreachable(DenizenError):
    """The server can't be reached now; another try may succeed."""


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """Where a world is and who signs in. `login` are the lines that sign in where the server asks for them."""

    host: str = "127.0.0.1"
    port: int = 8022
    transport: Literal["ssh", "telnet", "telnets"] = "ssh"
    user: str = ""
    password: str = ""
    key_file: str = ""
    login: tuple[str, ...] = ("connect {user} {password}",)


class ByteReader(Protocol):
    """The incoming half."""

    async def read(self, n: int = -1, /) -> bytes:
        """Some bytes, at most `n`; none: the server has closed."""


class ByteWriter(Protocol):
    """The outgoing half."""

    def write(self, data: bytes, /) -> None:
        """Send bytes."""

    def close(self) -> None:
        """Hang up."""


class Stream(msgspec.Struct, frozen=True):
    """An open connection; `greeting` is what an SSH server said before it let us in."""

    reader: ByteReader
    writer: ByteWriter
    greeting: str = ""


@asynccontextmanager
async def open_stream(server: Server, home: Path) -> AsyncGenerator[Stream]:
    """Connect, for as long as the context lasts. The keys of SSH servers are pinned in `known_hosts` of the home.

    Raises ServerUnreachable, and ConfigError if the user must act: a wrong password, another host key.
    """
    if server.transport == "ssh":
        async with _ssh(server, home) as stream:
            yield stream
        return
    tls = ssl.create_default_context() if server.transport == "telnets" else None
    try:
        async with asyncio.timeout(_CONNECT_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(server.host, server.port, ssl=tls)
    except ssl.SSLCertVerificationError as error:
        why = error.verify_message.rstrip(".")
        raise ConfigError(f"{address_of(server)} has a certificate that isn't trusted: {why}. {_TRUST}") from error
    except OSError as error:
        raise _unreachable(server, error) from error
    try:
        yield Stream(reader, writer)
    finally:
        writer.transport.abort()


@asynccontextmanager
async def _ssh(server: Server, home: Path) -> AsyncGenerator[Stream]:
    try:
        import asyncssh

        from denizen.worlds.moo.known_hosts import PinningClient, changed_key, pin, pinned_keys
    except ImportError as error:
        raise ConfigError(f"SSH needs the package asyncssh: {how_to_install('moo')}") from error
    pinned = pinned_keys(home, server.host, server.port)
    client = PinningClient(is_new=not pinned)
    try:
        keys = [asyncssh.read_private_key(server.key_file)] if server.key_file else None
    except (OSError, asyncssh.KeyImportError) as error:
        raise ConfigError(f"{server.key_file} isn't a private key that can be used: {error}.") from error
    try:
        async with asyncio.timeout(_CONNECT_TIMEOUT_S):
            connection = await asyncssh.connect(
                server.host,
                server.port,
                username=server.user,
                password=server.password or None,
                client_keys=keys,
                known_hosts=(pinned, [], []),
                client_factory=lambda: client,
                agent_path=None,
                config=None,
                keepalive_interval=KEEP_ALIVE_S,
                keepalive_count_max=MAX_UNANSWERED_KEEP_ALIVES,
            )
    except asyncssh.PermissionDenied as error:
        raise refused(server, client.greeting.strip()) from error
    except (asyncssh.HostKeyNotVerifiable, asyncssh.KeyExchangeFailed) as error:
        raise (changed_key(home, server.host, server.port) if pinned else _unreachable(server, error)) from error
    except (OSError, asyncssh.Error) as error:
        raise _unreachable(server, error) from error
    async with connection:
        if client.first:
            pin(home, server.host, server.port, client.first)
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_S):
                writer, reader, _ = await connection.open_session(term_type=TERM, term_size=(80, 24), encoding=None)
        except (OSError, asyncssh.Error) as error:
            raise _unreachable(server, error) from error
        yield Stream(reader, writer, client.greeting)


def refused(server: Server, words: str) -> ConfigError:
    """The error for a server that doesn't let the player in, in the server's own words if there are any."""
    said = f": “{one_line(words)}”" if words else "."
    return ConfigError(f"{address_of(server)} refused to sign {server.user} in{said} Check the user and password.")


def address_of(server: Server) -> str:
    """A server's host and port, for messages."""
    return f"{server.host}:{server.port}"


def _unreachable(server: Server, error: Exception) -> ServerUnreachable:
    return ServerUnreachable(
        f"{address_of(server)} can't be reached over {server.transport}: {error or 'it took too long'}."
    )
