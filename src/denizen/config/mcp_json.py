"""The MCP servers of a project: `.mcp.json`, as other agents read and write it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?\}", re.ASCII)
_TRANSPORTS = {"stdio", "http", "streamable-http", "streamableHttp"}


class _Entry(msgspec.Struct):
    """A server, with what else other agents write there left out."""

    type: str = ""
    command: str = ""
    args: list[str] = []
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    disabled: bool = False


class _File(msgspec.Struct):
    servers: dict[str, msgspec.Raw] = msgspec.field(name="mcpServers", default_factory=dict[str, msgspec.Raw])


def read_mcp_json(text: str, path: Path, environ: Mapping[str, str]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The servers by name, as settings, and notices about those that can't be used.

    `${VAR}` and `${VAR:-default}` are filled in from `environ`.
    """
    try:
        file = msgspec.json.decode(text, type=_File)
    except msgspec.DecodeError as error:
        return {}, [f"{path} is left out: {error}."]
    servers: dict[str, dict[str, Any]] = {}
    notices: list[str] = []
    for name, raw in file.servers.items():
        try:
            servers[name] = _settings(msgspec.json.decode(raw, type=_Entry), environ)
        except (msgspec.DecodeError, ValueError) as why:
            notices.append(f"{path}: the MCP server {name} is left out: {why}.")
    return servers, notices


def _settings(entry: _Entry, environ: Mapping[str, str]) -> dict[str, Any]:
    """A server as settings. Raises ValueError that says why it can't be used."""
    if bool(entry.command) == bool(entry.url):
        raise ValueError("it needs a command or a url")
    if entry.type and entry.type not in _TRANSPORTS:
        raise ValueError(f"its type {entry.type!r} isn't supported: use stdio or http")
    return {
        "command": _filled(entry.command, environ),
        "args": [_filled(each, environ) for each in entry.args],
        "env": {name: _filled(each, environ) for name, each in entry.env.items()},
        "url": _filled(entry.url, environ),
        "headers": {name: _filled(each, environ) for name, each in entry.headers.items()},
        "enabled": not entry.disabled,
    }


def _filled(text: str, environ: Mapping[str, str]) -> str:
    def value_of(variable: re.Match[str]) -> str:
        value = environ.get(variable["name"], variable["default"])
        if value is None:
            raise ValueError(f"it needs the variable {variable['name']}, which isn't set")
        return value

    return _VARIABLE.sub(value_of, text)
