"""`denizen gateway` and `denizen worker` as programs, and a client of the gateway."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec

PATIENCE = 120.0
"""Seconds that anything may take on a busy machine."""


def key_of(chat: str) -> str:
    """The session of a chat."""
    return f"agent:main:channel:http:account:default:peer:direct:{chat}"


def share(home: Path, url: str, more: str = "") -> None:
    """Have the programs of a home share this database."""
    with (home / "denizen.toml").open("a") as file:
        file.write(f'[gateway]\ndatabase = "{url}"\n{more}')


class WorkerProgram:
    """Starts a worker and kills it; `process` is the one that was started last.

    One that is `quick` has heartbeats so frequent that the dead are found within seconds. `python` starts it.
    """

    process: asyncio.subprocess.Process
    arguments: tuple[str, ...] = ("worker",)
    options: tuple[str, ...] = ()

    def __init__(
        self,
        home: Path,
        environ: Mapping[str, str],
        *,
        quick: bool = False,
        python: Sequence[str] = (sys.executable,),
    ) -> None:
        self._home = home
        self._environ = environ
        self._log = home.with_suffix(".log")
        program = (str(Path(__file__).with_name("quick.py")),) if quick else ("-m", "denizen")
        self._command = (*python, *program, *self.arguments)

    @property
    def log(self) -> str:
        """What all programs of the home wrote to standard error."""
        return self._log.read_text()

    async def begin(self) -> str:
        """Start it: the line that says that it is ready, or nothing where it ended before."""
        with self._log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *self._command, *self.options, env=self._environ, stdout=asyncio.subprocess.PIPE, stderr=log
            )
        assert self.process.stdout
        return (await asyncio.wait_for(self.process.stdout.readline(), PATIENCE)).decode().strip()

    async def start(self) -> None:
        """Start it, and wait until it is ready."""
        assert await self.begin() == "working", self.log

    @property
    def is_running(self) -> bool:
        return hasattr(self, "process") and self.process.returncode is None

    async def end(self, number: int = signal.SIGTERM) -> int:
        """End it with a signal; its exit status."""
        if self.is_running:
            self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), PATIENCE) if hasattr(self, "process") else 0

    def kill(self) -> None:
        """End it at once, from any thread."""
        with suppress(ProcessLookupError):  # it has ended, and the event loop doesn't know yet
            os.kill(self.process.pid, signal.SIGKILL)


class GatewayProgram(WorkerProgram):
    """Starts the gateway of a home, kills it, and talks to it."""

    arguments = ("gateway", "--port", "0")

    @property
    def token(self) -> str:
        return (self._home / "token").read_text().strip()

    @property
    def pid(self) -> int:
        """The process that the one that was started last says it is."""
        return self._told["pid"]

    @property
    def url(self) -> str:
        """The address of the one that was started last."""
        return f"http://127.0.0.1:{self._told['port']}"

    @property
    def _told(self) -> Any:
        return msgspec.json.decode((self._home / "gateway.json").read_bytes())

    async def start(self) -> None:
        """Start it, and wait until it listens."""
        assert await self.begin() == f"listening on {self.url}", self.log

    async def request(self, method: str, path: str, headers: Mapping[str, str] | None = None, **body: Any) -> Any:
        """The status and the JSON that a route answers."""
        given = {"Authorization": f"Bearer {self.token}"} if headers is None else headers
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, self.url + path, headers=given, **body) as response,
        ):
            return response.status, await response.json()

    async def post(self, chat: str, content: str, **more: Any) -> Any:
        """Post a message: the status, and the answer."""
        body = {"channel": "http", "chat": chat, "sender": "ann", "content": content, **more}
        return await self.request("POST", "/api/messages", json=body)

    async def replies(self, chat: str, count: int) -> list[Any]:
        """The first replies of a chat, once there are so many."""
        async with asyncio.timeout(PATIENCE):
            while True:
                path = f"/api/replies?chat={quote(chat)}&after=0"
                _, answer = await self.request("GET", f"{path}&wait=0")
                if len(answer["replies"]) >= count:
                    return answer["replies"]
                after = len(answer["replies"])
                await self.request("GET", f"/api/replies?chat={quote(chat)}&after={after}&wait=20")

    async def control(self, chat: str, **control: Any) -> Any:
        """Post a control: the status, and the answer."""
        path = f"/api/sessions/{quote(key_of(chat), safe='')}/controls"
        return await self.request("POST", path, json=control)
