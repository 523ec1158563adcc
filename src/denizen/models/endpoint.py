"""The target of requests: an address that was checked once, and the header fields of each request to it."""

import base64
import copy
import re
from collections.abc import Mapping
from typing import Final

from yarl import URL

from denizen.config.pattern import pattern
from denizen.errors import ConfigError
from denizen.models.providers import without_secrets

_HOST: Final = pattern(r"(?:[\w-]{1,63}\.)*[\w-]{1,63}\.?|[\da-f:.]*:[\da-f:.]*(?:%\w+)?", re.ASCII)
_HEADER_NAME: Final = pattern(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_RESERVED_HEADERS: Final = {"content-length", "transfer-encoding"}


class Endpoint:
    """The address of `path` (`/messages`) below `base_url`, and the header fields of each request to it.

    A query in `base_url` (`?api-version=1`) stays, after `path`; a user's name and password become a header field.
    `headers`: fields, later sources override earlier ones. Raises ConfigError if `base_url` isn't an address, naming
    the setting, or a field can't be sent.
    """

    def __init__(self, base_url: str, path: str, setting: str, *headers: Mapping[str, str]) -> None:
        url = _parsed(base_url)
        if url is None:
            raise ConfigError(_no_address(base_url, setting))
        login = f"{url.user or ''}:{url.password or ''}".encode()
        below = url.raw_path.rstrip("/")
        if path.startswith("/v1/"):  # users write it either way
            below = below.removesuffix("/v1")
        has_login = url.raw_user is not None or url.raw_password is not None
        url = url.with_user(None)
        self.server = str(url.origin())
        self.base_url = f"{self.server}{below}"
        """As it was understood, without a user's name and password, and without a query."""
        self.url = url.with_path(below + path, encoded=True, keep_query=True)
        self.headers = {"content-type": "application/json", "user-agent": "denizen"}
        if has_login:
            self.headers["authorization"] = f"Basic {base64.b64encode(login).decode()}"
        for source in headers:
            for name, value in source.items():
                if not _HEADER_NAME.fullmatch(name) or name.lower() in _RESERVED_HEADERS:
                    raise ConfigError(
                        f"{name!r} can't be one of the provider's headers: it isn't a field name, or not yours to set"
                    )
                if not value.isprintable():
                    raise ConfigError(
                        f"The header {name} (a key, or one of the provider's headers) holds a control character"
                    )
                self.headers[name.lower()] = value

    def at(self, path: str) -> "Endpoint":
        """Another path of the same API, which may have a query of its own, with the same header fields."""
        other = copy.copy(self)
        path, _, query = path.partition("?")
        below = URL(self.base_url).raw_path.rstrip("/")
        other.url = self.url.with_path(below + path, encoded=True, keep_query=True).extend_query(query)
        return other


def read_proxy(address: str, setting: str, *, needs_scheme: bool = True) -> str:
    """The normalised address of a proxy; empty if none is set. Raises ConfigError, naming the setting."""
    address = address.strip()
    if not address:
        return ""
    with_scheme = _parsed(f"http://{address}")
    if with_scheme and with_scheme.path != "/":
        with_scheme = None
    if url := _parsed(address) or (None if needs_scheme else with_scheme):
        return str(url)
    meant = with_scheme or "one like http://proxy.example:3128"
    socks = " (SOCKS isn't supported)" if address.lower().startswith("socks") else ""
    instead = without_secrets(str(meant)).rstrip("/")
    raise ConfigError(
        f'{setting} is "{without_secrets(address)}", not an http or https address{socks}: write {instead}'
    )


def _parsed(address: str) -> URL | None:
    """The http or https address, or None if it isn't one."""
    try:
        address.encode()
        url = URL(address.strip())
        f"{url.user}:{url.password}".encode()
    except ValueError:  # a port that is none, a host that can't be
        return None
    is_address = url.scheme in {"http", "https"} and _HOST.fullmatch(url.raw_host or "")
    return url if is_address and url.port != 0 and not url.fragment else None


def _no_address(base_url: str, setting: str) -> str:
    """The error message, with the address that was probably meant if only its scheme is missing, or with an example."""
    base_url = without_secrets(base_url)
    host, slash, path = base_url.partition("/")
    meant = "one like http://localhost:8080/v1"
    if host and "://" not in base_url:
        scheme = "https" if "." in host and ":" not in host else "http"
        meant = f"{scheme}://{host}/{path if slash else 'v1'}"
    return f'{setting} is "{base_url}", not an http or https address: write {meant}'
