"""The token of a home's gateway: who has it, has the agent."""

import secrets
from pathlib import Path

from denizen.config.files import read_settings, write_private
from denizen.errors import ConfigError


def read_token(home: Path) -> str:
    """The token, made at the gateway's first start. Raises ConfigError."""
    path = home / "token"
    data = read_settings(path)
    if data is None:
        return new_token(home)
    token = data.decode(errors="replace").strip()
    if not token:
        raise ConfigError(f"{path} is empty. Remove it, and a new token is made.")
    return token


def new_token(home: Path) -> str:
    """A new token, in place of the old one. Raises ConfigError."""
    token = secrets.token_urlsafe(32)
    write_private(home / "token", f"{token}\n".encode())
    return token
