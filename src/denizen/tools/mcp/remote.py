"""A server that is reached over HTTP, with the sign-in that it may want (OAuth)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from denizen.config.files import read_settings, write_private
from denizen.config.home import sole_writer
from denizen.config.settings import McpServer
from denizen.errors import ConfigError
from denizen.runtime.clock import Clock
from denizen.tools.mcp.listing import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    import httpx2
    from mcp.client._transport import TransportStreams
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

_CONNECT_TIMEOUT_S, _READ_TIMEOUT_S = 30.0, 300.0
"""Seconds for a connection, and for the next byte of an answer."""
_PATH = "/callback"


@dataclass(eq=False)
class Remote:
    """Speaks with a server over streamable HTTP. `browse`, if given, lets the person sign in if the server wants it:
    it gets the address to open.
    """

    name: str
    settings: McpServer
    tokens: "Tokens"
    browse: Callable[[str], Awaitable[None]] | None = None
    _status: int = 0
    _was_asked: bool = False

    def trouble(self) -> str:
        """The status of the last answer, if that was an error; the address, if nothing ever answered."""
        if self._was_asked and not self._status:
            server = urlsplit(self.settings.url)
            where = f"{server.scheme}://{server.netloc.rpartition('@')[2]}"  # there may be secrets in the rest
            return f"nothing answered at {where}: is it running there, and is mcp.{self.name}.url right?"
        if self._status in {401, 403}:
            return f"HTTP status {self._status}; if it wants a sign-in: denizen mcp login {self.name}"
        return f"HTTP status {self._status}" if self._status >= 400 else ""

    @asynccontextmanager
    async def open(self, over: asyncio.Event) -> "AsyncGenerator[TransportStreams]":
        """Connect meanwhile; that a connection is lost shows in the requests."""
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        self._was_asked = True
        async with (
            _sign_in(self.settings.url, self.tokens, self.browse) as auth,
            httpx2.AsyncClient(
                headers=self.settings.headers,
                auth=auth,
                timeout=httpx2.Timeout(_CONNECT_TIMEOUT_S, read=_READ_TIMEOUT_S),
                event_hooks={"response": [self._watch]},
            ) as http,
            streamable_http_client(
                self.settings.url, http_client=http, max_sse_event_size=MAX_MESSAGE_BYTES
            ) as streams,
        ):
            yield streams

    async def _watch(self, response: "httpx2.Response") -> None:
        self._status = response.status_code
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _bounded(response.stream)


def _bounded(stream: Any) -> Any:
    """The stream of an answer, which raises when it is too long."""
    import httpx2

    class Bounded(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            total = 0
            async for data in stream:
                total += len(data)
                if total > MAX_MESSAGE_BYTES:
                    raise httpx2.RemoteProtocolError(f"it sent a message of more than {MAX_MESSAGE_BYTES:,} bytes")
                yield data

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()


class _StoredSignIn(msgspec.Struct, frozen=True):
    """The sign-in at a server: its tokens, their expiry (seconds since the epoch), and where they are renewed."""

    client: dict[str, Any] | None = None
    tokens: dict[str, Any] | None = None
    until: float | None = None
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True)
class Tokens:
    """The sign-in at the server of an address, kept in the home for the user alone."""

    home: Path
    url: str
    clock: Clock

    @property
    def kept(self) -> _StoredSignIn:
        """The stored sign-in; empty fields if nobody signed in. Raises ConfigError."""
        return self._read().get(self.url, _StoredSignIn())

    def forget(self) -> None:
        """Forget the sign-in: a client is registered for one callback address."""
        self.keep(client=None, tokens=None, until=None, metadata=None)

    def keep(self, **fields: Any) -> None:
        """Change what is kept. Raises ConfigError."""
        with sole_writer(self.home):
            every = self._read()
            every[self.url] = msgspec.structs.replace(every.get(self.url, _StoredSignIn()), **fields)
            write_private(self._path, msgspec.json.encode(every))

    async def get_tokens(self) -> "OAuthToken | None":
        """The tokens that sign requests."""
        from mcp.shared.auth import OAuthToken

        return OAuthToken.model_validate(self.kept.tokens) if self.kept.tokens else None

    async def set_tokens(self, tokens: "OAuthToken") -> None:
        """Store the tokens that sign requests."""
        until = None if tokens.expires_in is None else self.clock.now().timestamp() + tokens.expires_in
        self.keep(tokens=tokens.model_dump(mode="json", exclude_none=True), until=until)

    async def get_client_info(self) -> "OAuthClientInformationFull | None":
        """How we are registered."""
        from mcp.shared.auth import OAuthClientInformationFull

        return OAuthClientInformationFull.model_validate(self.kept.client) if self.kept.client else None

    async def set_client_info(self, client_info: "OAuthClientInformationFull") -> None:
        """Keep how we are registered."""
        self.keep(client=client_info.model_dump(mode="json", exclude_none=True))

    @property
    def _path(self) -> Path:
        return self.home / "mcp-tokens.json"

    def _read(self) -> dict[str, _StoredSignIn]:
        try:
            return msgspec.json.decode(read_settings(self._path) or b"{}", type=dict[str, _StoredSignIn])
        except msgspec.DecodeError as error:
            raise ConfigError(f"{self._path} is damaged: {error}. Remove it, and sign in again.") from error


@asynccontextmanager
async def _sign_in(
    url: str, tokens: Tokens, browse: Callable[[str], Awaitable[None]] | None
) -> "AsyncGenerator[OAuthClientProvider | None]":
    """Signs requests with the stored tokens; with `browse` it also gets them. None: nobody has signed in."""
    kept = tokens.kept
    if browse is None and not kept.tokens:
        yield None
        return
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata, OAuthMetadata

    async with _callback() as (address, came):
        metadata = OAuthClientMetadata.model_validate(
            {"client_name": "Denizen", "redirect_uris": [address], "token_endpoint_auth_method": "none"}
        )
        provider = OAuthClientProvider(url, metadata, tokens, browse, came if browse else None)
        provider.context.token_expiry_time = kept.until  # or tokens that are over would not be renewed
        provider.context.oauth_metadata = OAuthMetadata.model_validate(kept.metadata) if kept.metadata else None
        yield provider
        if browse and provider.context.oauth_metadata:
            tokens.keep(metadata=provider.context.oauth_metadata.model_dump(mode="json", exclude_none=True))


@asynccontextmanager
async def _callback() -> "AsyncGenerator[tuple[str, Callable[[], Awaitable[AuthorizationCodeResult]]]]":
    """The address on this machine that the browser comes back to, and what it brings."""
    from aiohttp import web
    from mcp.shared.auth import AuthorizationCodeResult

    brought: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def take(request: web.Request) -> web.Response:
        query = request.query
        if not brought.done():
            code = AuthorizationCodeResult(code=query.get("code", ""), state=query.get("state"), iss=query.get("iss"))
            brought.set_result(code)
        return web.Response(text="You can close this page and go back to Denizen.")

    async def came() -> AuthorizationCodeResult:
        return await brought

    app = web.Application()
    app.router.add_get(_PATH, take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}{_PATH}", came
    finally:
        brought.cancel()
        await runner.cleanup()
