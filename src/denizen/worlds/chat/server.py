"""A gateway that listens: its token, its port, and the file that tells where it is."""

import asyncio
import os
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from aiohttp import web

from denizen.config.files import read_settings, write_private
from denizen.errors import ConfigError
from denizen.worlds.chat.database import is_locked
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.http import make_app

_CLOSING = 2.0
"""Seconds that open requests have to end when the gateway stops."""


class Running(msgspec.Struct, frozen=True):
    """`gateway.json`: the process that serves the home, and where."""

    pid: int
    port: int
    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def find_running(home: Path) -> Running | None:
    """The gateway that serves the home; None: there is none."""
    if not is_locked(home / "gateway.db"):
        return None
    data = read_settings(home / "gateway.json")
    try:
        return msgspec.json.decode(data, type=Running) if data else None
    except msgspec.DecodeError as error:
        raise ConfigError(
            f"{home / 'gateway.json'} can't be read: {error}. Remove it, and start the gateway."
        ) from error


def read_token(home: Path) -> str:
    """The token of the home's gateway, made at its first start."""
    path = home / "token"
    data = read_settings(path)
    if data is None:
        write_private(path, f"{secrets.token_urlsafe(32)}\n".encode())
        return read_token(home)
    token = data.decode(errors="replace").strip()
    if not token:
        raise ConfigError(f"{path} is empty. Remove it, and a new token is made.")
    return token


@asynccontextmanager
async def listening(gateway: Gateway, home: Path, *, host: str, port: int) -> AsyncGenerator[Running]:
    """Serve HTTP for as long as the block runs. Raises ConfigError where the port can't be had."""
    app = make_app(gateway, read_token(home), host)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_CLOSING, handler_cancellation=True)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise ConfigError(
                f"The gateway can't listen at {host}:{port}: {error.strerror}. Choose another port (--port)."
            ) from error
        running = Running(os.getpid(), runner.addresses[0][1], host)
        await asyncio.to_thread(write_private, home / "gateway.json", msgspec.json.encode(running))
        try:
            yield running
        finally:
            (home / "gateway.json").unlink(missing_ok=True)
    finally:
        await runner.cleanup()
