"""A real Matrix home server, Synapse: installed once beside the tests, started once for a run of them."""

import asyncio
import base64
import fcntl
import hashlib
import hmac
import io
import os
import secrets
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
from aiohttp import web
from tests.worlds.chat.delivery.channels.servers.program import Listener
from tests.worlds.moo.djangomoo import PYTHON, free_port, install, wait_for_port

REQUIREMENTS = Path(__file__).parent / "synapse" / "requirements.txt"
CACHE = Path(__file__).parents[5] / ".cache" / f"synapse-{PYTHON}"
_STARTED: list[subprocess.Popen[bytes]] = []  # they outlive who started them, and are ended by their numbers
_FAST = {"per_second": 1000, "burst_count": 1000}


class Synapse(msgspec.Struct, frozen=True):
    """A server that runs, on 127.0.0.1 alone, with SQLite."""

    folder: str
    port: int
    secret: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        folder, configuration = Path(self.folder), Path(self.folder, "homeserver.yaml")
        configuration.write_bytes(msgspec.json.encode(self._configuration()))  # JSON is YAML
        command = [CACHE / "bin" / "python", "-m", "synapse.app.homeserver", "-c", configuration]
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [*map(str, command)],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        _STARTED.append(process)
        (folder / "started.pid").write_text(str(process.pid))
        wait_for_port(self.port)

    def stop(self) -> None:
        with suppress(FileNotFoundError, ProcessLookupError):
            os.killpg(int(Path(self.folder, "started.pid").read_text()), signal.SIGKILL)

    def _configuration(self) -> dict[str, Any]:
        listener = {"port": self.port, "bind_addresses": ["127.0.0.1"], "type": "http", "tls": False}
        return {
            "server_name": "localhost",
            "listeners": [{**listener, "resources": [{"names": ["client"]}]}],
            "database": {"name": "sqlite3", "args": {"database": f"{self.folder}/homeserver.db"}},
            "media_store_path": f"{self.folder}/media",
            "signing_key": f"ed25519 a_key {base64.b64encode(os.urandom(32)).decode().rstrip('=')}",
            "registration_shared_secret": self.secret,
            "bcrypt_rounds": 4,
            "presence": {"enabled": False},
            "report_stats": False,
            "suppress_key_server_warning": True,
            "trusted_key_servers": [],
            "rc_message": _FAST,
            "rc_login": dict.fromkeys(("address", "account", "failed_attempts"), _FAST),
            "rc_joins": {"local": _FAST, "remote": _FAST},
            "rc_invites": dict.fromkeys(("per_room", "per_user", "per_issuer"), _FAST),
            "rc_room_creation": _FAST,
        }


def running_server(shared: Path) -> Synapse:
    """The server of this run of tests. Raises NotInstallable.

    `shared` is a folder that all processes of the run have in common.
    """
    with (shared / "synapse.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        address = shared / "synapse.json"
        if not address.exists():
            install(CACHE, REQUIREMENTS)
            (folder := shared / "synapse").mkdir(exist_ok=True)
            server = Synapse(str(folder), free_port(), secrets.token_hex(16))
            try:
                server.start()
            except BaseException:
                server.stop()
                raise
            address.write_bytes(msgspec.json.encode(server))
        return msgspec.json.decode(address.read_bytes(), type=Synapse)


def remove_started(shared: Path) -> None:
    """End the server that `running_server` has started, if any."""
    address = shared / "synapse.json"
    if address.exists():
        msgspec.json.decode(address.read_bytes(), type=Synapse).stop()
        address.unlink()


class MatrixUser:
    """Somebody with an account, who speaks the client-server API directly."""

    def __init__(self, url: str, http: aiohttp.ClientSession, account: dict[str, str]) -> None:
        self.url, self.http = url, http
        self.id, self.token, self.device = account["user_id"], account["access_token"], account["device_id"]

    @classmethod
    async def register(
        cls, server: Synapse, http: aiohttp.ClientSession, name: str, *, is_admin: bool = False
    ) -> "MatrixUser":
        """A new account, `NAME-…`, whose password is its name; made with the server's shared secret."""
        path = f"{server.url}/_synapse/admin/v1/register"
        async with http.get(path) as answer:
            nonce = (await answer.json())["nonce"]
        user = f"{name}-{secrets.token_hex(4)}"
        words = [nonce, user, user, "admin" if is_admin else "notadmin"]
        mac = hmac.new(server.secret.encode(), "\0".join(words).encode(), hashlib.sha1).hexdigest()
        body = {"nonce": nonce, "username": user, "password": user, "admin": is_admin, "mac": mac, "displayname": user}
        async with http.post(path, json=body) as answer:
            return cls(server.url, http, await answer.json())

    async def call(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """The answer to a request of the client-server API."""
        headers = {"Authorization": f"Bearer {self.token}"}
        data = body if isinstance(body, bytes) or body is None else msgspec.json.encode(body)
        file = None if data is None else io.BytesIO(data)
        async with self.http.request(method, f"{self.url}{path}", data=file, headers=headers, **options) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def create_room(self, *invited: str, **options: Any) -> str:
        body = {"invite": invited, "preset": "trusted_private_chat", **options}
        return (await self.call("POST", "/_matrix/client/v3/createRoom", body))["room_id"]

    async def say(self, room: str, content: dict[str, Any]) -> str:
        """Send an `m.room.message`; its event id."""
        path = f"/_matrix/client/v3/rooms/{room}/send/m.room.message/{secrets.token_hex(8)}"
        return (await self.call("PUT", path, content))["event_id"]

    async def timeline(self, room: str) -> list[dict[str, Any]]:
        """The room's events, oldest first."""
        answer = await self.call("GET", f"/_matrix/client/v3/rooms/{room}/messages?dir=f&limit=500")
        return answer["chunk"]


class FaultyProxy:
    """What the channel takes for the home server: the real one, with faults on command.

    `refused` counts the messages that met the flood limit.
    """

    def __init__(self, target: str, http: aiohttp.ClientSession) -> None:
        self.flood_ms = self.refused = 0
        self.refuses_edits = False
        self.loses_answer = False
        self._asked: list[str] = []
        self._answered: list[str] = []
        self._news = asyncio.Event()
        self._target, self._http = target, http
        self._connections: set[Any] = set()
        self._runner = web.ServerRunner(
            web.Server(self._answer, handler_cancellation=True, access_log=None), shutdown_timeout=0
        )

    async def start(self) -> str:
        """Its URL."""
        await self._runner.setup()
        self.listener = Listener(self._runner)
        await self.listener.open()
        return f"http://127.0.0.1:{self.listener.port}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    def drop_connections(self) -> None:
        for transport in [*self._connections]:
            transport.abort()
        self._connections.clear()

    async def wait_for(self, path: str, *, times: int) -> None:
        """Return once so many requests for such a path have come."""
        await self._wait_for(path, self._asked, times)

    async def wait_for_next(self, path: str) -> None:
        """Return once another request for such a path has come."""
        before = len([each for each in self._asked if each.endswith(path)])
        await self.wait_for(path, times=before + 1)

    async def wait_for_answer(self, path: str) -> None:
        """Return once the home server has answered a request for such a path."""
        await self._wait_for(path, self._answered, 1)

    async def _wait_for(self, path: str, seen: list[str], times: int) -> None:
        while len([each for each in seen if each.endswith(path)]) < times:
            self._news.clear()
            await self._news.wait()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Errors as in "Standard error response" of the client-server specification."""
        assert request.transport
        self._connections.add(request.transport)
        self._asked.append(request.path)
        self._news.set()
        body, is_message = await request.content.read(), "/send/m.room." in request.path
        if is_message and self.flood_ms:
            self.refused += 1
            limited = {"errcode": "M_LIMIT_EXCEEDED", "error": "Too Many Requests", "retry_after_ms": self.flood_ms}
            return web.json_response(limited, status=429)
        if is_message and self.refuses_edits and b'"m.replace"' in body:
            return web.json_response({"errcode": "M_FORBIDDEN", "error": "No edits here"}, status=403)
        headers = {key: value for key, value in request.headers.items() if key in {"Authorization", "Content-Type"}}
        async with self._http.request(
            request.method, f"{self._target}{request.raw_path}", data=io.BytesIO(body), headers=headers
        ) as answer:
            data = await answer.read()
            self._answered.append(request.path)
            self._news.set()
            if is_message and self.loses_answer:
                self.loses_answer = False
                request.transport.abort()
            return web.Response(body=data, status=answer.status, content_type=answer.content_type)
