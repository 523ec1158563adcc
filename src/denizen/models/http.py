"""HTTP requests to model servers: aiohttp's client, with our time-outs, proxies and wording of failures."""

import asyncio
import os
import ssl
import urllib.request
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final
from weakref import WeakSet

import aiohttp
from aiohttp import ClientRequest, ClientResponse, ClientSession, ClientTimeout, TCPConnector
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_exceptions import ContentLengthError, TransferEncodingError
from aiohttp.resolver import ThreadedResolver
from aiohttp.tracing import Trace

from denizen.config.pattern import pattern
from denizen.models.endpoint import Endpoint, read_proxy
from denizen.models.providers import is_local_host

CONNECT_TIMEOUT_S: Final = 10.0
"""Seconds to connect, name lookup and TLS included."""

STREAM_SILENCE_S: Final = 120.0
"""Seconds without a byte after which a stream has died."""

ANSWER_SILENCE_S: Final = 600.0
"""The same for an answer in one piece, if nothing comes until the model has finished."""

KEEP_ALIVE_S: Final = 30.0
"""Seconds that an unused connection is kept."""

MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""Bytes of an answer that is read whole."""

MAX_EVENT_BYTES: Final = 16 * 1024 * 1024
"""Bytes of one event of a stream."""

CHUNK_BYTES: Final = 64 * 1024
"""Bytes of a request that are written without waiting: asyncio buffers as many."""

RESEND_WITHIN_S: Final = 2.0
"""Seconds within which a connection breaks that the server had closed while it was idle."""

_METADATA_HOSTS: Final = {"metadata.google.internal", "169.254.169.254"}
"""Hosts that tell a cloud's machine its identity: never reached by a proxy."""


class Http:
    """Sends requests, and keeps connections open between them: those of an event loop end with it.

    They go through `proxy`, otherwise through that of the usual variables in `environ`, but never to this machine or
    to a host in NO_PROXY. Raises ConfigError if `proxy` isn't an address.
    """

    def __init__(
        self,
        *,
        proxy: str = "",
        environ: Mapping[str, str] | None = None,
        connect_s: float = CONNECT_TIMEOUT_S,
        stream_silence_s: float = STREAM_SILENCE_S,
        answer_silence_s: float = ANSWER_SILENCE_S,
    ) -> None:
        self._proxy = read_proxy(proxy, "proxy")
        self._environ = os.environ if environ is None else environ
        self._timeouts = {
            stream: ClientTimeout(total=None, connect=connect_s, sock_read=silence)
            for stream, silence in ((True, stream_silence_s), (False, answer_silence_s))
        }
        self._sessions: dict[asyncio.AbstractEventLoop, tuple[ClientSession, AsyncGenerator[ClientSession]]] = {}
        self._tls: ssl.SSLContext | None = None
        self._proxies: dict[str, tuple[str, str]] | None = None

    def get(self, to: Endpoint) -> AbstractAsyncContextManager["Response"]:
        """GET what is there; as `post`."""
        return self.post(to, (), stream=True)

    @asynccontextmanager
    async def post(self, to: Endpoint, body: Sequence[bytes], *, stream: bool) -> AsyncGenerator["Response"]:
        """POST the pieces of a body; without one, GET. Redirects aren't followed.

        Raises OSError, as reading the answer does, and ConfigError where the environment's proxy isn't an address.
        """
        timeout = self._timeouts[stream]
        try:
            answer = await self._send_again_if_closed(to, body, timeout)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _connection_error(error, to, timeout) from error
        try:
            yield Response(answer, timeout)
        finally:
            answer.release()

    async def close(self) -> None:
        """Close the connections of this event loop; the next request opens new ones."""
        if kept := self._sessions.pop(asyncio.get_running_loop(), None):
            await kept[1].aclose()

    async def _send_again_if_closed(
        self, to: Endpoint, body: Sequence[bytes], timeout: ClientTimeout
    ) -> ClientResponse:
        """Send a request once more if the server had closed its connection while that was idle, and so never saw it."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            return await self._send(to, body, timeout)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            begun = isinstance(error, aiohttp.ServerDisconnectedError) and not isinstance(error.message, str)
            if begun or not _reused.get() or loop.time() - started > RESEND_WITHIN_S:
                raise
        return await self._send(to, body, timeout)

    async def _send(self, to: Endpoint, body: Sequence[bytes], timeout: ClientTimeout) -> ClientResponse:
        session, whole = await self._session(), b"".join(body)
        options: dict[str, Any] = {
            "allow_redirects": False,
            "proxy": self._proxy_to(to) or None,
            "timeout": timeout,
        }
        if to.url.scheme == "https":
            self._tls = self._tls or ssl.create_default_context()
            options["ssl"] = self._tls
        if not body:
            return await session.get(to.url, headers=to.headers, **options)
        if len(whole) <= CHUNK_BYTES:
            return await session.post(to.url, data=whole, headers=to.headers, **options)
        async with asyncio.timeout(None) as upload:
            pieces = _chunks(whole, upload, timeout.sock_read or 0.0)
            headers = {**to.headers, "content-length": str(len(whole))}
            return await session.post(to.url, data=pieces, headers=headers, **options)

    async def _session(self) -> ClientSession:
        """The session of this event loop: connections can't be used in another."""
        loop = asyncio.get_running_loop()
        if loop not in self._sessions:
            for ended in [each for each in self._sessions if each.is_closed()]:
                del self._sessions[ended]
            closing = _open_session()
            self._sessions[loop] = (await anext(closing), closing)
        return self._sessions[loop][0]

    def _proxy_to(self, to: Endpoint) -> str:
        """The proxy that leads to a server; aiohttp's `trust_env` would also send passwords from ~/.netrc."""
        if self._proxies is None:  # by scheme, the variable and its value; names in small letters come first
            found = sorted(item for item in self._environ.items() if item[0].lower().endswith("_proxy"))
            self._proxies = {name.lower()[:-6]: (name, value.strip()) for name, value in found}
        host = to.url.host or ""
        bypassed = urllib.request.proxy_bypass_environment  # pyrefly: ignore[missing-attribute]
        if (
            is_local_host(host)
            or host in _METADATA_HOSTS
            or bypassed(host, {"no": self._proxies.get("no", ("", ""))[1]})
        ):
            return ""
        name, value = self._proxies.get(to.url.scheme, ("", ""))
        return self._proxy or read_proxy(value, name, needs_scheme=False)


class Response:
    """An answer whose `status` and `headers` (looked up in any case) are there; its body is still to be read."""

    __slots__ = ("_answer", "_timeout", "headers", "status")

    def __init__(self, answer: ClientResponse, timeout: ClientTimeout) -> None:
        self.status = answer.status
        self.headers: Mapping[str, str] = answer.headers
        self._answer = answer
        self._timeout = timeout

    async def read_some(self) -> bytes:
        """The bytes that arrived since the last call; waits for some. Empty at the end."""
        try:
            return await self._answer.content.readany()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _reading_error(error, self._timeout) from error

    async def read(self) -> bytes:
        """All that is left."""
        whole = bytearray()
        while data := await self.read_some():
            whole += data
            if len(whole) > MAX_ANSWER_BYTES:
                raise ConnectionError(f"its answer is longer than {MAX_ANSWER_BYTES >> 20} MB")
        return bytes(whole)

    async def finish(self, seconds: float = 1.0) -> None:
        """Read what follows a complete answer, so that its connection can be used again; don't wait long for it."""
        if not self._answer.content.at_eof():
            with suppress(OSError):
                async with asyncio.timeout(seconds):
                    await self.read()


_LONE_CR: Final = pattern(rb"\r(?!\n)")


class SseParser:
    """Cuts the bytes of a stream, however they arrive, into the data of its server-sent events.

    Their names, ids and retry times are dropped, and so are comments. The data is JSON, which may begin with a space.
    https://html.spec.whatwg.org/multipage/server-sent-events.html
    """

    def __init__(self) -> None:
        self._rest = b"\n"

    def feed(self, data: bytes) -> list[bytes]:
        """The data of every event that is complete now. Raises ConnectionError if one has no end."""
        if len(self._rest) > MAX_EVENT_BYTES:
            raise ConnectionError(f"its stream has an event of more than {MAX_EVENT_BYTES >> 20} MB")
        data = self._rest + data
        held = b""
        end = data.rfind(b"\n\n")
        if b"\r" in data:
            if _LONE_CR.search(data):
                held = b"\r" if data.endswith(b"\r") else b""  # its line feed may be yet to come
                data = data.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            end = max(data.rfind(b"\n\n"), data.rfind(b"\n\r\n"))
        self._rest = data[end + 1 :] + held
        return _payloads(data[: end + 1]) if end >= 0 else []

    def close(self) -> list[bytes]:
        """The data of an event that the end of the stream cut off; a bare JSON object counts as one."""
        rest, self._rest = self._rest.strip(), b"\n"
        return [rest] if rest.startswith(b"{") else _payloads(b"\n%s\n" % rest)


_reused: Final = ContextVar("reused", default=False)
"""Whether the latest request of this task got a connection that others had used: a trace of aiohttp's is slower."""


class _Connector(TCPConnector):
    def __init__(self) -> None:
        # the system's resolver: aiohttp would take aiodns, which a channel's library may have brought
        super().__init__(limit=0, keepalive_timeout=KEEP_ALIVE_S, resolver=ThreadedResolver())
        self._used = WeakSet[ResponseHandler]()

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout) -> Connection:
        _reused.set(False)
        connection = await super().connect(req, traces, timeout)
        protocol = connection.protocol
        if protocol is not None and protocol in self._used:
            _reused.set(True)
            if protocol.should_close:  # what a server sent while nobody asked would be taken for the answer
                connection.close()
                raise aiohttp.ServerDisconnectedError
        elif protocol is not None:
            self._used.add(protocol)
        return connection


async def _open_session() -> AsyncGenerator[ClientSession]:
    """A session that is closed with the generator: `asyncio.run` closes all of them before its event loop ends."""
    async with ClientSession(connector=_Connector(), cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield session


async def _chunks(body: bytes, upload: asyncio.Timeout, silence: float) -> AsyncGenerator[bytes]:
    """A long body, given up when the server takes none of it for so many seconds: aiohttp only watches the answer."""
    loop = asyncio.get_running_loop()
    for start in range(0, len(body), CHUNK_BYTES):
        upload.reschedule(loop.time() + silence)
        yield body[start : start + CHUNK_BYTES]
    upload.reschedule(None)


def _connection_error(error: Exception, to: Endpoint, timeout: ClientTimeout) -> OSError:
    """The error for a request without an answer."""
    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=ssl.SSLCertVerificationError() as refused):
            return refused
        case aiohttp.ConnectionTimeoutError():
            return TimeoutError(f"no connection within {timeout.connect:g} s")
        case aiohttp.ClientConnectorDNSError(os_error=reason):
            return ConnectionError(f"the host {error.host} can't be found ({reason.strerror or reason})")
        case aiohttp.ClientHttpProxyError():
            reason = f"{error.status} {error.message}".strip()
            return ConnectionError(f"the proxy refused to connect ({reason})")
        case aiohttp.ClientProxyConnectionError(os_error=reason):
            return ConnectionError(
                f"the proxy {error.host}:{error.port} can't be reached ({reason.strerror or reason})"
            )
        case aiohttp.ClientConnectorError(os_error=ssl.SSLError() | ConnectionResetError() as reason) if (
            to.url.scheme == "https"
        ):
            reason = getattr(reason, "reason", "it hung up")
            return ConnectionError(f"no TLS with {to.server} ({reason}): does it speak https?")
        case aiohttp.ClientConnectorError(os_error=reason):
            return reason
    return _reading_error(error, timeout)


def _reading_error(error: Exception, timeout: ClientTimeout) -> OSError:
    """The error for an answer that breaks off or isn't HTTP."""
    cause = error.__cause__
    match error:
        case TimeoutError():
            return TimeoutError(f"nothing came for {timeout.sock_read:g} s")
        case aiohttp.ClientResponseError() if "content-encoding" in error.message:
            return ConnectionError(f"its answer is compressed, in a way that it wasn't asked for ({error.message})")
        case aiohttp.ClientResponseError():
            return ConnectionError(f"its answer is not HTTP: {' '.join(error.message.split())[:200]}")
        case aiohttp.ClientPayloadError() if not isinstance(cause, ContentLengthError | TransferEncodingError):
            why = " ".join(getattr(cause, "message", "").split())[:200]
            return ConnectionError(f"its answer can't be read{why and f': {why}'}")
        case aiohttp.ClientOSError() if error.strerror:
            return ConnectionError(error.strerror)
    return ConnectionResetError("the server closed the connection")


def _payloads(events: bytes) -> list[bytes]:
    """The data of whole events; an event has one line of data, with few exceptions."""
    first, *pieces = events.split(b"\ndata:")
    payloads = [piece[:end] for piece in pieces if (end := piece.find(b"\n")) > 1]
    if len(payloads) == len(pieces) and not first.startswith(b"\n\xef\xbb\xbf"):
        return payloads
    payloads = []
    for event in events.replace(b"\r\n", b"\n").split(b"\n\n"):
        fields = [line.removeprefix(b"\xef\xbb\xbf").partition(b":") for line in event.split(b"\n")]
        payloads.append(b"\n".join([value.removeprefix(b" ") for name, _, value in fields if name == b"data"]))
    return [payload for payload in payloads if payload]
