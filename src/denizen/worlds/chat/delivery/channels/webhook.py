"""Webhooks: programs post messages, and replies are posted to them; both are signed.

Headers and signatures follow Standard Webhooks 1.0, https://www.standardwebhooks.com.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac

import aiohttp
import msgspec
from aiohttp import hdrs, web

from denizen.errors import ConfigError, SessionError
from denizen.ports.channel import Accept, ChannelHome, ChannelKind, ChannelLimits, ChannelSettings, Sent
from denizen.ports.queue import AnswerChoice, InboundMessage, OutboundMessage
from denizen.sessions import SessionKey
from denizen.worlds.chat.delivery.channels import outgoing

MAX_CLOCK_SKEW_S = 300.0
"""How far a request's timestamp may be from our clock."""
_TIMEOUT = aiohttp.ClientTimeout(30.0)  # seconds
UNAVAILABLE_RETRY_S = 30.0
"""The delay before a retry if the receiver sends no Retry-After."""
_ID_HEADER, _TIMESTAMP_HEADER, _SIGNATURE_HEADER = "webhook-id", "webhook-timestamp", "webhook-signature"


class WebhookSettings(ChannelSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[channels.webhook]`."""

    url: str
    """Where replies are posted."""
    secret: str
    """The shared secret, `whsec_` and at least 24 bytes in base64."""
    port: int
    """The port to listen at; messages are posted to `/`."""
    host: str = "127.0.0.1"
    """The address to listen at; a reverse proxy adds TLS."""


class WebhookMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of an incoming message."""

    content: str
    chat: str = "webhook"
    sender: str = "webhook"


class WebhookReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of an outgoing message. To answer with a choice, post its text to the chat."""

    chat: str
    content: str
    in_reply_to: str = ""
    choices: tuple[AnswerChoice, ...] = ()


def signature(key: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    """The signature header of a request."""
    digest = hmac.digest(key, f"{message_id}.{timestamp}.".encode(errors="replace") + body, hashlib.sha256)
    return f"v1,{base64.b64encode(digest).decode()}"


def key_of(secret: str) -> bytes:
    """The bytes of a secret. Raises ConfigError."""
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not secret.startswith("whsec_") or len(key) < 24:
        raise ConfigError("A webhook's secret is `whsec_` and at least 24 bytes in base64.")
    return key


class WebhookChannel:
    """One listener, and one URL for the replies to all chats."""

    limits = ChannelLimits(buttons=True, reconciles=True)

    def __init__(self, settings: WebhookSettings, home: ChannelHome) -> None:
        self.name = home.name
        self._settings = settings
        self._clock = home.clock
        self._key = key_of(settings.secret)

    async def receive(self, accept: Accept) -> None:
        async def post(request: web.Request) -> web.Response:
            body = await request.read()
            if refusal := self._refusal(request, body):
                return web.Response(status=401, text=refusal)
            try:
                received = msgspec.json.decode(body, type=WebhookMessage)
                key = SessionKey(received.chat, channel=self.name)
            except (msgspec.DecodeError, SessionError) as error:
                return web.Response(status=400, text=str(error))
            message_id, chat = request.headers[_ID_HEADER], received.chat
            await accept(InboundMessage(self.name, chat, received.sender, received.content, str(key), id=message_id))
            return web.Response(status=204)

        app = web.Application()
        app.router.add_post("/", post)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._settings.host, self._settings.port).start()
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    def _refusal(self, request: web.Request, body: bytes) -> str:
        """Why a request is rejected; empty if it is valid."""
        message_id, timestamp, given = (
            request.headers.get(name, "") for name in (_ID_HEADER, _TIMESTAMP_HEADER, _SIGNATURE_HEADER)
        )
        expected = signature(self._key, message_id, timestamp, body)
        if not message_id or not any(
            hmac.compare_digest(each.encode(errors="replace"), expected.encode()) for each in given.split()
        ):
            return f"The signature is wrong. Sign {_ID_HEADER}.{_TIMESTAMP_HEADER}.body with the channel's secret."
        if not timestamp.isdecimal() or abs(self._clock.now().timestamp() - int(timestamp)) > MAX_CLOCK_SKEW_S:
            return f"{_TIMESTAMP_HEADER} is more than {MAX_CLOCK_SKEW_S:g} s off."
        return ""

    async def send(self, message: OutboundMessage) -> Sent:
        if refusal := outgoing.send_refusal(message, self.limits):
            return Sent("failed", refusal)
        # The receiver drops ids that it has seen, so a request can safely be repeated.
        message_id = f"msg_{outgoing.delivery_key(message)}"
        timestamp = str(int(self._clock.now().timestamp()))
        body = msgspec.json.encode(WebhookReply(message.chat, message.content, message.in_reply_to, message.choices))
        headers = {
            _ID_HEADER: message_id,
            _TIMESTAMP_HEADER: timestamp,
            _SIGNATURE_HEADER: signature(self._key, message_id, timestamp, body),
            hdrs.CONTENT_TYPE: "application/json",
        }
        try:
            async with aiohttp.request(
                "POST", self._settings.url, data=body, headers=headers, allow_redirects=False, timeout=_TIMEOUT
            ) as response:
                return _outcome(response, message_id)
        except aiohttp.ClientConnectorError as error:
            return Sent("later", str(error), retry_after=outgoing.CONNECT_RETRY_S)
        except (aiohttp.ClientError, TimeoutError) as error:
            return Sent("unknown", f"{type(error).__name__}: {error}")


def _outcome(response: aiohttp.ClientResponse, message_id: str) -> Sent:
    status = response.status
    if 200 <= status < 300:
        return Sent(native_id=message_id)
    reason = f"The receiver answered {status} {response.reason}."
    if status in {401, 403}:
        return Sent("later", f"{reason} Does it have the same secret?", retry_after=outgoing.REFUSED_RETRY_S)
    if status == 429 or status >= 500:
        wait = response.headers.get(hdrs.RETRY_AFTER, "")
        return Sent("later", reason, retry_after=float(wait) if wait.isdecimal() else UNAVAILABLE_RETRY_S)
    return Sent("failed", reason)


async def check(settings: WebhookSettings) -> str:
    """Check the settings, and return both addresses. Raises ConfigError for a bad secret or an unreachable receiver."""
    key_of(settings.secret)
    try:
        async with aiohttp.request("HEAD", settings.url, allow_redirects=False, timeout=_TIMEOUT):
            return f"http://{settings.host}:{settings.port}/, with replies to {settings.url}"
    except (aiohttp.ClientError, ValueError, TimeoutError) as error:
        raise ConfigError(f"{settings.url} can't be reached: {error or type(error).__name__}.") from error


KIND = ChannelKind(
    settings=WebhookSettings,
    connect=WebhookChannel,
    check=check,
    account="{0.host}:{0.port}".format,
    steps="Give the program that posts and receives messages the same secret: whsec_ and 32 random bytes in base64.\n"
    "How to sign messages: https://www.standardwebhooks.com",
)
