"""The keys of SSH servers: the first that a server shows is trusted, and pinned in `known_hosts` of the home."""

import os
from pathlib import Path

import asyncssh

from denizen.config.files import as_text, read_settings
from denizen.errors import ConfigError

NAME = "known_hosts"


def pinned_keys(home: Path, host: str, port: int) -> list[asyncssh.SSHKey]:
    """The keys that are known of a server; none: it is new. Raises ConfigError for a file that can't be read."""
    path = home / NAME
    text = as_text(read_settings(path) or b"", path)
    try:
        return [*asyncssh.import_known_hosts(text).match(host, "", port)[0]]
    except ValueError as error:
        raise ConfigError(f"{path} isn't in OpenSSH's format: {error}.") from error


class PinningClient(asyncssh.SSHClient):
    """Accepts any key of a new server and keeps it as `first`; `greeting` is the server's banner."""

    def __init__(self, is_new: bool) -> None:
        self._is_new = is_new
        self.first: asyncssh.SSHKey | None = None
        self.greeting = ""

    def auth_banner_received(self, msg: str, lang: str) -> None:
        self.greeting += msg

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        if self._is_new:
            self.first = key
        return self._is_new


def pin(home: Path, host: str, port: int, key: asyncssh.SSHKey) -> None:
    """Remember a server's key. Raises ConfigError when it can't be written."""
    path = home / NAME
    line = f"[{host}]:{port} ".encode() + b" ".join(key.export_public_key().split()[:2]) + b"\n"
    if not (read_settings(path) or b"\n").endswith(b"\n"):
        line = b"\n" + line
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with open(descriptor, "ab") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(line)
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror}.") from error


def changed_key(home: Path, host: str, port: int) -> ConfigError:
    """The error for a server that shows another key than before."""
    return ConfigError(
        f"{host}:{port} shows another SSH key than the one in {home / NAME}. Another server may be posing as it. "
        f"If its owner has changed the key, remove the line of [{host}]:{port} from that file and start again."
    )
