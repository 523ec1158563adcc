"""Discord on the loopback, over TLS: the REST routes and the gateway that a bot needs, with faults on command.

The payloads are those of Discord's documentation, https://docs.discord.com/developers: "Message", "Channel", "Guild",
"Receiving and Responding" (interactions), "Gateway" (HELLO, IDENTIFY, RESUME, heartbeats, close codes), "Rate Limits".
"""

import asyncio
import datetime as dt
import ipaddress
import json
import socket
import ssl
import time
import zlib
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.worlds.chat.delivery.channels.servers.program import Listener

from denizen.ports import ChannelHome
from denizen.worlds.chat.delivery.channels import discord
from denizen.worlds.chat.delivery.channels.discord import DiscordChannel, DiscordSettings

HOSTS = ("discord.com", "gateway.discord.gg", "cdn.discordapp.com")
EPOCH_MS = 1_420_070_400_000
BOT, ANN, OTHER_BOT = 100, 200, 300
HOME, WORK, GUILD, GROUP, THREAD = 1001, 1002, 2000, 2001, 2002
INTENT_FLAG = 1 << 18
"""GATEWAY_MESSAGE_CONTENT."""


class Loopback(AbstractResolver):
    """Every host is that port of this machine."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host="127.0.0.1",
                port=self.port,
                family=socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
        ]

    async def close(self) -> None:
        pass


class LoopbackSettings(DiscordSettings, frozen=True, kw_only=True):
    """Where the server is, besides."""

    port: int
    certificate: str

    def connector(self) -> aiohttp.TCPConnector:
        """A connector for which this is Discord."""
        trusted = ssl.create_default_context(cafile=self.certificate)
        return aiohttp.TCPConnector(resolver=Loopback(self.port), ssl=trusted)


def connected(settings: LoopbackSettings, home: ChannelHome) -> DiscordChannel:
    return DiscordChannel(settings, home, settings.connector)


KIND = discord.KIND._replace(settings=LoopbackSettings, connect=connected)


def certificate(folder: Path) -> Path:
    """A key and a certificate for Discord's hosts that nobody else trusts, in one file."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now = dt.datetime.now(dt.UTC)
    names = [*map(x509.DNSName, HOSTS), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, form, plain)
    (path := folder / "discord.pem").write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return path


class DiscordServer:
    """A bot, Ann, two direct chats, and a server with a channel and a thread."""

    def __init__(self, folder: Path) -> None:
        self.token, self.intent_flags = "MTAw.x.secret", INTENT_FLAG
        self.flood_s = 0.0
        self.refuses_edits = self.loses_answer = self.sessions_end = False
        self.messages: dict[int, list[dict[str, Any]]] = {key: [] for key in (HOME, WORK, GROUP, THREAD)}
        self.nonces: dict[str, dict[str, Any]] = {}
        self.files: dict[str, bytes] = {}
        self.pressed: list[dict[str, Any]] = []
        self.mentions: list[Any] = []
        self.opened: list[str] = []
        self.connected = asyncio.Event()
        self._acknowledged = asyncio.Event()
        self._last_ms = 1_780_000_000_000
        self._events: list[dict[str, Any]] = []
        self._sockets: dict[web.WebSocketResponse, Any] = {}
        self._transports: set[Any] = set()
        self._certificate = certificate(folder)
        app = web.Application(client_max_size=30_000_000)
        for path in ("/", "/attachments/{name}"):
            app.router.add_get(path, self._gateway if path == "/" else self._download)
        for method, path, handler in (
            ("GET", "/users/@me", self._me),
            ("GET", "/oauth2/applications/@me", self._application),
            ("GET", "/channels/{chat}/messages", self._history),
            ("POST", "/channels/{chat}/messages", self._create),
            ("PATCH", "/channels/{chat}/messages/{id}", self._edit),
            ("POST", "/interactions/{id}/{token}/callback", self._callback),
        ):
            app.router.add_route(method, f"/api/v10{path}", handler)
        app.middlewares.append(self._checked)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)

    async def start(self) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate)
        await self._runner.setup()
        self.listener = Listener(self._runner, context)
        await self.listener.open()

    async def stop(self) -> None:
        self.drop_connections()
        await self._runner.cleanup()

    @property
    def settings(self) -> "LoopbackSettings":
        """What a channel needs to take this for Discord, also in another process."""
        return LoopbackSettings(token=self.token, port=self.listener.port, certificate=str(self._certificate))

    # What people do

    @property
    def after_all(self) -> dt.datetime:
        """The time of the newest message so far, and a little more."""
        return dt.datetime.fromtimestamp(self._last_ms / 1000 + 0.5, dt.UTC)

    def new_id(self) -> int:
        """A snowflake of now, but at least a second after the one before."""
        self._last_ms = max(self._last_ms + 1000, int(time.time() * 1000))
        return (self._last_ms - EPOCH_MS) << 22

    async def post(self, chat: int, author: int, content: str, **more: Any) -> dict[str, Any]:
        """Write a message, and dispatch it."""
        message_id = self.new_id()
        message = {
            "id": str(message_id),
            "channel_id": str(chat),
            "author": self.user(author),
            "content": content,
            "timestamp": _time(message_id),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "mentions": [],
            "mention_roles": [],
            "attachments": [],
            "embeds": [],
            "pinned": False,
            "type": 0,
            **more,
        }
        self.messages[chat].append(message)
        await self.dispatch("MESSAGE_CREATE", message | self.place(chat))
        return message

    async def change(self, message: dict[str, Any], content: str) -> None:
        message |= {"content": content, "edited_timestamp": _time(self.new_id())}
        await self.dispatch("MESSAGE_UPDATE", message | self.place(int(message["channel_id"])))

    async def press(self, chat: int, label: str) -> None:
        """Press a button of the last message that has some."""
        message = [each for each in self.messages[chat] if each.get("components")][-1]
        [button] = [each for row in message["components"] for each in row["components"] if each["label"] == label]
        interaction = {
            "id": str(self.new_id()),
            "application_id": str(BOT),
            "type": 3,
            "token": "token",
            "version": 1,
            "channel_id": str(chat),
            "channel": {"id": str(chat), "type": 1},
            "user": self.user(ANN),
            "message": message,
            "data": {"custom_id": button["custom_id"], "component_type": 2},
            "entitlements": [],
            "authorizing_integration_owners": {},
            "attachment_size_limit": 10_000_000,
        }
        await self.dispatch("INTERACTION_CREATE", interaction)

    async def acknowledged(self) -> None:
        """Return once a press has been."""
        await self._acknowledged.wait()

    async def dispatch(self, name: str, data: dict[str, Any]) -> None:
        """An event of the session, to the connection that there is."""
        self._events.append({"op": 0, "t": name, "s": len(self._events) + 1, "d": data})
        for connection in [*self._sockets]:
            await self._send(connection, self._events[-1])

    def drop_connections(self) -> None:
        for transport in self._transports:
            transport.abort()
        self._transports.clear()
        self._sockets.clear()

    async def reset_token(self) -> None:
        self.token = "another"
        for connection in [*self._sockets]:
            await connection.close(code=4004, message=b"Authentication failed.")

    def user(self, key: int) -> dict[str, Any]:
        names = {BOT: "denizen", ANN: "ann", OTHER_BOT: "shop"}
        user = {"id": str(key), "username": names[key], "discriminator": "0", "avatar": None, "global_name": None}
        return user | ({"bot": True} if key != ANN else {})

    def place(self, chat: int) -> dict[str, Any]:
        return {"guild_id": str(GUILD)} if chat in {GROUP, THREAD} else {}

    # The REST routes

    @property
    def _checked(self) -> Any:
        @web.middleware
        async def check(request: web.Request, handler: Any) -> web.StreamResponse:
            assert request.transport
            self._transports.add(request.transport)
            is_api = request.path.startswith("/api/")
            is_public = not is_api or "/interactions/" in request.path
            if not is_public and request.headers.get("Authorization") != f"Bot {self.token}":
                return _error(401, 0, "401: Unauthorized")
            if self.flood_s and is_api and request.method in {"POST", "PATCH"}:
                limited = {"message": "You are being rate limited.", "retry_after": self.flood_s, "global": False}
                return _json(limited, status=429, headers={"Via": "1.1 google"})
            return await handler(request)

        return check

    async def _me(self, _: web.Request) -> web.Response:
        return _json(self.user(BOT))

    async def _application(self, _: web.Request) -> web.Response:
        known = {"id": str(BOT), "name": "denizen", "icon": None, "description": "", "verify_key": "0" * 64}
        owner = {"owner": self.user(ANN), "team": None, "flags": self.intent_flags}
        return _json(known | owner | {"bot_public": True, "bot_require_code_grant": False})

    async def _history(self, request: web.Request) -> web.Response:
        after, limit = int(request.query.get("after", 0)), int(request.query["limit"])
        before = int(request.query.get("before", 2**63))
        chat = self.messages[int(request.match_info["chat"])]
        found = [each for each in chat if after < int(each["id"]) < before]
        return _json((found[:limit] if after else found[-limit:])[::-1])

    async def _create(self, request: web.Request) -> web.Response:
        body = await self._body(request)
        self.mentions.append(body.get("allowed_mentions"))
        nonce, chat = body.get("nonce"), int(request.match_info["chat"])
        if len(body.get("content") or "") > 2000:
            return _error(400, 50035, "Invalid Form Body")
        if not (body.get("enforce_nonce") and nonce in self.nonces):
            more = {"components": body.get("components", []), "attachments": body["files"]}
            self.nonces[str(nonce)] = await self.post(chat, BOT, body.get("content") or "", **more)
        return self._answer(request, self.nonces[str(nonce)])

    async def _edit(self, request: web.Request) -> web.Response:
        if self.refuses_edits:
            return _error(403, 50013, "Missing Permissions")
        body, chat = await self._body(request), int(request.match_info["chat"])
        [message] = [each for each in self.messages[chat] if each["id"] == request.match_info["id"]]
        self.mentions.append(body.get("allowed_mentions"))
        await self.change(message, body["content"])
        return self._answer(request, message)

    async def _callback(self, request: web.Request) -> web.Response:
        self.pressed.append(await request.json())
        self._acknowledged.set()
        return web.Response(status=204)

    async def _download(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return web.Response(body=self.files[name]) if name in self.files else web.Response(status=404)

    async def _body(self, request: web.Request) -> dict[str, Any]:
        if request.content_type == "application/json":
            return {"files": [], **await request.json()}
        form, files = await request.post(), []
        for file in form.values():
            if isinstance(file, web.FileField):
                data = file.file.read()
                url = f"https://cdn.discordapp.com/attachments/{file.filename}"
                files.append({"id": str(len(files)), "filename": file.filename, "size": len(data), "url": url})
                files[-1]["proxy_url"] = url
                self.files[file.filename] = data
        return {"files": files, **json.loads(str(form["payload_json"]))}

    def _answer(self, request: web.Request, message: dict[str, Any]) -> web.Response:
        if self.loses_answer and request.transport:
            self.loses_answer = False
            request.transport.abort()
        return _json(message)

    # The gateway

    async def _gateway(self, request: web.Request) -> web.WebSocketResponse:
        connection = web.WebSocketResponse()
        await connection.prepare(request)
        self._sockets[connection] = zlib.compressobj() if request.query.get("compress") == "zlib-stream" else None
        await self._send(connection, {"op": 10, "d": {"heartbeat_interval": 41_250}, "s": None, "t": None})
        ready = self._sockets.pop(connection), False
        async for received in connection:
            payload = json.loads(received.data)
            if payload["op"] == 1:
                self._sockets[connection] = ready[0]
                await self._send(connection, {"op": 11, "d": None, "s": None, "t": None})
            elif payload["d"]["token"] != self.token:
                await connection.close(code=4004, message=b"Authentication failed.")
            elif payload["op"] == 2 and payload["d"]["intents"] & 1 << 15 and not self.intent_flags:
                await connection.close(code=4014, message=b"Disallowed intent(s).")
            elif payload["op"] in {2, 6}:
                self.opened.append("identify" if payload["op"] == 2 else "resume")
                self._sockets[connection] = ready[0]
                await (self._begin() if payload["op"] == 2 else self._resume(connection, payload["d"]["seq"]))
        self._sockets.pop(connection, None)
        return connection

    async def _begin(self) -> None:
        self._events.clear()
        session = {"session_id": "session", "resume_gateway_url": "wss://gateway.discord.gg", "shard": [0, 1]}
        guilds, application = [{"id": str(GUILD), "unavailable": True}], {"id": str(BOT), "flags": self.intent_flags}
        user = {"v": 10, "user": self.user(BOT), "private_channels": []}
        await self.dispatch("READY", {**user, "guilds": guilds, "application": application, **session})
        await self.dispatch("GUILD_CREATE", self._guild())
        self.connected.set()

    async def _resume(self, connection: web.WebSocketResponse, seen: int) -> None:
        if self.sessions_end:
            await self._send(connection, {"op": 9, "d": False, "s": None, "t": None})
            return
        for event in self._events[seen:]:
            await self._send(connection, event)
        await self.dispatch("RESUMED", {})

    def _guild(self) -> dict[str, Any]:
        lasts = {key: each[-1]["id"] if each else None for key, each in self.messages.items()}
        channel = {"id": str(GROUP), "type": 0, "name": "general", "position": 0, "last_message_id": lasts[GROUP]}
        metadata = {"archived": False, "auto_archive_duration": 1440, "archive_timestamp": _time(1), "locked": False}
        thread = {"id": str(THREAD), "type": 11, "guild_id": str(GUILD), "parent_id": str(GROUP), "name": "topic"}
        thread |= {"owner_id": str(ANN), "thread_metadata": metadata, "last_message_id": lasts[THREAD]}
        thread |= {"message_count": 0, "member_count": 1, "rate_limit_per_user": 0}
        everyone = {"id": str(GUILD), "name": "@everyone", "permissions": "0", "position": 0, "color": 0}
        everyone |= {"hoist": False, "managed": False, "mentionable": False, "colors": {"primary_color": 0}}
        return {
            "id": str(GUILD),
            "name": "people",
            "owner_id": str(ANN),
            "unavailable": False,
            "member_count": 2,
            "roles": [everyone],
            "channels": [channel | {"permission_overwrites": [], "parent_id": None}],
            "threads": [thread],
            **{key: [] for key in ("members", "emojis", "stickers", "presences", "voice_states", "features")},
        }

    async def _send(self, connection: web.WebSocketResponse, event: dict[str, Any]) -> None:
        if connection not in self._sockets:
            return  # it was dropped meanwhile
        data, compressor = json.dumps(event).encode(), self._sockets[connection]
        try:
            if compressor is None:
                await connection.send_str(data.decode())
            else:
                await connection.send_bytes(compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH))
        except ConnectionResetError:
            self._sockets.pop(connection, None)  # its process was killed


def _json(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """The library recognises JSON by this exact type."""
    more = {"Content-Type": "application/json", **(headers or {})}
    return web.Response(body=json.dumps(data).encode(), status=status, headers=more)


def _error(status: int, code: int, message: str) -> web.Response:
    """As in "JSON Error Response"."""
    return _json({"code": code, "message": message}, status=status)


def _time(snowflake: int) -> str:
    at = dt.datetime.fromtimestamp(((snowflake >> 22) + EPOCH_MS) / 1000, dt.UTC)
    return at.isoformat()
