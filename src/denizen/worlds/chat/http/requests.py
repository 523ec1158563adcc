"""Reading requests, and refusing them."""

import functools
import json
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import msgspec
from aiohttp import web

from denizen.entries import AnyEntry
from denizen.errors import DenizenError, SessionError, SessionUnknown
from denizen.sessions.key import session_key
from denizen.worlds.chat.gateway import Gateway

MAX_BODY_BYTES = 1_000_000
"""Default limit of a request's body."""
GATEWAY = web.AppKey("gateway", Gateway)

Body = TypeVar("Body")
_ENCODER = msgspec.json.Encoder(enc_hook=repr)
_log = logging.getLogger(__name__)


def json_response(answer: msgspec.Struct, status: int = 200) -> web.Response:
    """A response with this body."""
    return web.Response(body=_ENCODER.encode(answer), status=status, content_type="application/json")


def json_handler(handler: Callable[[web.Request], Awaitable[msgspec.Struct]]) -> Callable[..., Awaitable[web.Response]]:
    """An aiohttp handler from one that returns a struct; the struct type also describes the route in OpenAPI."""

    @functools.wraps(handler)
    async def answer(request: web.Request) -> web.Response:
        return json_response(await handler(request))

    return answer


def refusal(status: int, why: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """An error response."""
    return web.json_response({"error": {"message": why}}, status=status, headers=headers)


class Refused(web.HTTPException):
    """Ends a request with a status and the reason."""

    def __init__(self, status: int, why: str) -> None:
        self.status_code = status
        super().__init__(text=why)


@contextmanager
def refusing(status: int, error: type[DenizenError], redact: Callable[[str], str] = str) -> Generator[None]:
    """Refuse the request for errors of this type, with the status and the error's words."""
    try:
        yield
    except error as why:
        raise Refused(status, redact(str(why))) from why


def failure(request: web.Request, error: Exception) -> tuple[int, str]:
    """The status and the reason for a request that failed; faults of the gateway are logged."""
    match error:
        case web.HTTPException():
            return error.status, error.text or error.reason
        case DenizenError():
            why = request.app[GATEWAY].agent.record.redact(str(error))
            _log.error("%s %s: %s", request.method, request.path, why)
            return 503, why
        case _:
            _log.error("%s %s failed.", request.method, request.path, exc_info=error)
            return 500, f"The gateway failed ({type(error).__name__}). Its log says more."


async def read_body(request: web.Request, kind: type[Body], most: int = MAX_BODY_BYTES) -> Body:
    """The body as JSON of that kind. Raises HTTPException: 400 if it isn't, 413 if it is longer than `most` bytes."""
    try:
        data = await request.clone(client_max_size=most).read()
    except web.RequestPayloadError as error:
        raise Refused(400, f"The body can't be read: {error}.") from error
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, f"The body doesn't fit this route: {error}.") from error


def read_key(request: web.Request) -> str:
    """The session key in the path. Raises HTTPException 404 if it isn't one."""
    with refusing(404, SessionError):
        return session_key(request.match_info["key"])


async def entries_of(request: web.Request) -> Sequence[AnyEntry]:
    """The entries of the session in the path. Raises HTTPException 404 if there is none."""
    key = read_key(request)
    with refusing(404, SessionUnknown):
        return await request.app[GATEWAY].agent.record.store.read(key)


def read_number(request: web.Request, name: str, kind: type[int] | type[float], most: float) -> float:
    """A number of the query between 0 and `most`, by default 0. Raises HTTPException 400."""
    text = request.query.get(name, "0")
    try:
        number = kind(text)
    except ValueError:
        number = -1
    if not 0 <= number <= most:
        raise Refused(400, f"`{name}` is a number from 0 to {most:.16g}, not {json.dumps(text)}.")
    return number
