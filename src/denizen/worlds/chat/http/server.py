"""The HTTP server of a gateway, and `gateway.json`, by which clients find it."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import msgspec
from aiohttp import web

from denizen.config.files import read_settings, write_private
from denizen.config.lock_file import holder_of
from denizen.errors import ConfigError
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.http import make_app
from denizen.worlds.chat.http.access import ACCESS
from denizen.worlds.chat.http.connections import IDLE_S, protocol_log
from denizen.worlds.chat.http.token import read_token

MIN_TOKEN_CHARS = 20
"""Minimum length of a token if other machines can reach the gateway."""
_CLOSE_TIMEOUT_S = 2.0
"""Seconds for open requests to end when the gateway stops."""


class Running(msgspec.Struct, frozen=True):
    """`gateway.json`: the process that serves the home, and where."""

    pid: int
    port: int
    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class GatewayAway(ConfigError):
    """The gateway doesn't answer: it is starting or stopping, or isn't running."""


def find_running(home: Path) -> Running | None:
    """The gateway that serves the home, if any. Raises GatewayAway while one is starting or stopping."""
    if not holder_of(home / "gateway.lock"):
        return None
    data = read_settings(home / "gateway.json")
    if data is None:
        raise GatewayAway(f"A gateway is starting or stopping on {home}. Try again in a moment.")
    try:
        return msgspec.json.decode(data, type=Running)
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{home / 'gateway.json'} can't be read: {error}. Remove it, and start the gateway."
        ) from error


def _check_token(home: Path, host: str) -> None:
    """Raises ConfigError for a token that is too short if other machines can reach the gateway."""
    try:
        is_here = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_here = False
    if not is_here and len(read_token(home)) < MIN_TOKEN_CHARS:
        raise ConfigError(
            f"Other machines can reach the gateway at {host}, and the token in {home / 'token'} is too short for that. "
            "Make a new one: denizen gateway --rotate-token"
        )


@asynccontextmanager
async def listening(gateway: Gateway, home: Path, *, host: str, port: int) -> AsyncGenerator[Running]:
    """Serve HTTP for as long as the block runs. Raises ConfigError for a port that is taken, and a weak token."""
    _check_token(home, host)
    app = make_app(gateway, home, host)
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=protocol_log(),
        keepalive_timeout=IDLE_S,
        shutdown_timeout=_CLOSE_TIMEOUT_S,
        handler_cancellation=True,
    )
    await runner.setup()
    try:
        try:
            server = await app[ACCESS].connections.listen(runner, host, port)
        except OSError as error:
            # asyncio puts its own words before the system's
            why = str(error.strerror).rpartition(": ")[2].rpartition("] ")[2]
            raise ConfigError(
                f"The gateway can't listen at {host}:{port}: {why}. Choose another port (--port) or address (--host)."
            ) from error
        running = Running(os.getpid(), server.sockets[0].getsockname()[1], host)
        await asyncio.to_thread(write_private, home / "gateway.json", msgspec.json.encode(running))
        try:
            yield running
        finally:
            (home / "gateway.json").unlink(missing_ok=True)
            server.close()
            asyncio.get_running_loop().set_exception_handler(None)
    finally:
        await runner.cleanup()
