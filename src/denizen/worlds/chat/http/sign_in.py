"""Signing in to the page: one-time links, and the cookies that browsers get for them."""

import hashlib
import hmac
import logging
import secrets
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import msgspec
from aiohttp import hdrs, web

from denizen.config.files import read_settings, write_private
from denizen.runtime.clock import Clock

LINK_LIFETIME_S = 300.0
"""Seconds after which an unused link expires."""
COOKIE_LIFETIME_S = 30 * 86_400.0
"""Seconds for which a browser stays signed in."""
MAX_BROWSERS = 50
"""Browsers that are signed in at once; a further one signs out the one that signed in first."""
_MAX_LINKS = 20
_log = logging.getLogger(__name__)


class SignInLink(msgspec.Struct, frozen=True):
    """A code that signs in one browser, once, until `expires_at` (seconds since the epoch)."""

    code: str
    expires_at: float


class SignIns:
    """The browsers that are signed in, in the file `sign_ins.json` of the home: a restart signs out none.

    The file has only digests of their cookies, made with the gateway's token: a new token signs out all of them.
    """

    def __init__(self, home: Path, token: bytes, clock: Clock) -> None:
        self._path = home / "sign_ins.json"
        self._token = token
        self._clock = clock
        self._links: dict[str, float] = {}
        self._browsers: dict[str, float] = {}
        with suppress(msgspec.DecodeError):  # damaged: they sign in again
            self._browsers = msgspec.json.decode(read_settings(self._path) or b"{}", type=dict[str, float])

    def create_link(self) -> SignInLink:
        """A new link; of too many, the oldest is void."""
        while len(self._links) >= _MAX_LINKS:
            self._links.pop(next(iter(self._links)))
        link = SignInLink(secrets.token_urlsafe(24), self._now() + LINK_LIFETIME_S)
        self._links[self._digest(link.code)] = link.expires_at
        return link

    def redeem(self, code: str) -> str:
        """A cookie for an open link's code; empty if it was used, is too old, or never was one."""
        if self._links.pop(self._digest(code), 0.0) <= self._now():
            return ""
        cookie = secrets.token_urlsafe(32)
        latest = [*self._browsers.items(), (self._digest(cookie), self._now() + COOKIE_LIFETIME_S)]
        self._write(dict(latest[-MAX_BROWSERS:]))
        _log.info("A browser signed in.")
        return cookie

    def browser(self, cookie: str) -> str:
        """The browser that is signed in with a cookie; empty if there is none."""
        digest = self._digest(cookie)
        return digest if self._browsers.get(digest, 0.0) > self._now() else ""

    def end(self, browser: str) -> None:
        """Sign out a browser."""
        self._write({each: until for each, until in self._browsers.items() if each != browser})

    def end_all(self, token: bytes) -> None:
        """Sign out all browsers, because the gateway has a new token."""
        self._token = token
        self._links.clear()
        self._write({})

    def _write(self, browsers: dict[str, float]) -> None:
        self._browsers = {each: until for each, until in browsers.items() if until > self._now()}
        write_private(self._path, msgspec.json.encode(self._browsers))

    def _digest(self, text: str) -> str:
        return hmac.new(self._token, text.encode(errors="replace"), hashlib.sha256).hexdigest()

    def _now(self) -> float:
        return self._clock.now().timestamp()


def cookie_name(request: web.BaseRequest) -> str:
    """The cookie's name, which contains the port because browsers share cookies between a host's ports."""
    port = request.host.rpartition(":")[2]  # not `request.url`, which a malformed Host doesn't have
    return f"denizen-{port if port.isdecimal() else 80}"


def set_cookie(request: web.Request, response: web.Response, cookie: str) -> None:
    """Give the browser its cookie; an empty one takes it back."""
    response.set_cookie(
        cookie_name(request),
        cookie,
        max_age=int(COOKIE_LIFETIME_S) if cookie else 0,
        httponly=True,
        samesite="Strict",
        secure=_is_encrypted(request),
    )


def _is_encrypted(request: web.Request) -> bool:
    """Whether the browser uses TLS, directly or through a proxy on this machine that says so."""
    if request.headers.get(hdrs.ORIGIN, "").lower().startswith("https:") or request.secure:
        return True
    with suppress(ValueError):
        return ip_address(request.remote or "").is_loopback and request.headers.get("X-Forwarded-Proto") == "https"
    return False
