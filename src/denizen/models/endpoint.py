"""Where requests go: an address that was checked once, and what each request to it begins with."""

import base64
import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from denizen.errors import ConfigError

_IN_PATHS: Final = "/%:@!$&'()*+,;=~"
_HOSTS: Final = re.compile(r"(?:[\w-]{1,63}\.)*[\w-]{1,63}\.?|[\da-f:.]*:[\da-f:.]*(?:%\w+)?", re.ASCII)
_NAMES: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_FRAMING: Final = {"content-length", "transfer-encoding"}


class Server(NamedTuple):
    """Whom a connection leads to."""

    tls: bool
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _port(tls=self.tls) else f":{self.port}"
        return f"{'https' if self.tls else 'http'}://{host}{port}"


class Endpoint:
    """The address of `path` (`/messages`) below `base_url`, and what each request to it begins with.

    A query in `base_url` (`?api-version=1`) stays, after `path`. `headers`: fields, the later sources' over the earlier
    ones'. Raises ConfigError where `base_url` is no address, naming the setting, or a field can't be sent.
    """

    def __init__(self, base_url: str, path: str, setting: str, *headers: Mapping[str, str]) -> None:
        try:
            parts = urlsplit(base_url.strip())
            host, port = _host(parts.hostname or ""), parts.port
            login = _login(parts)
            below = quote(parts.path.rstrip("/"), safe=_IN_PATHS)
            query = quote(parts.query, safe=f"{_IN_PATHS}?")
        except ValueError:  # a port that is none, a host that can't be
            raise ConfigError(_no_address(base_url, setting)) from None
        if parts.scheme not in {"http", "https"} or port == 0 or parts.fragment:
            raise ConfigError(_no_address(base_url, setting))
        tls = parts.scheme == "https"
        self.server = Server(tls, host, port or _port(tls=tls))
        self.base_url = f"{self.server}{below}"
        """As it was understood, without a user's name and password, and without a query."""
        target = f"{below}{quote(path, safe=_IN_PATHS)}{query and f'?{query}'}"
        fields = {
            "host": str(self.server).partition("://")[2],
            "accept": "*/*",
            "accept-encoding": "identity",
            "content-type": "application/json",
            "user-agent": "denizen",
            **login,
        }
        for source in headers:
            fields |= {name.lower(): _sendable(name, value) for name, value in source.items()}
        lines = [f"POST {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        self.head = "".join(f"{line}\r\n" for line in lines).encode()


def _port(*, tls: bool) -> int:
    return 443 if tls else 80


def _host(name: str) -> str:
    """As the wire has it. Raises ValueError where no host can be called so."""
    name = name if name.isascii() else name.encode("idna").decode()
    if not _HOSTS.fullmatch(name):
        raise ValueError(name)
    return name


def _login(parts: SplitResult) -> dict[str, str]:
    """The field that a user's name and password become, where the address holds them."""
    if parts.username is None:
        return {}
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return {"authorization": f"Basic {base64.b64encode(login).decode()}"}


def _sendable(name: str, value: str) -> str:
    if not _NAMES.fullmatch(name) or name.lower() in _FRAMING:
        raise ConfigError(
            f"{name!r} can't be one of the provider's headers: it is no field's name, or not yours to set"
        )
    if not value.isprintable():
        raise ConfigError(f"The header {name} (a key, or one of the provider's headers) holds a control character")
    return value


def shown(base_url: str) -> str:
    """The address for people: without a password, and without what follows `?`, which may be a key."""
    return re.sub("[^/@]*@", "", base_url.partition("?")[0], count=1)


def _no_address(base_url: str, setting: str) -> str:
    base_url = shown(base_url)
    return f'{setting} is "{base_url}", not an http or https address: write {_meant(base_url)}'


def _meant(base_url: str) -> str:
    """The address that was probably meant, where only its scheme is missing; else an example."""
    host, slash, path = base_url.partition("/")
    if not host or "://" in base_url:
        return "one like http://localhost:8080/v1"
    scheme = "https" if "." in host and ":" not in host else "http"
    return f"{scheme}://{host}/{path if slash else 'v1'}"
