"""Denizen's gateway and its workers, as processes of their own: how they are started, and reached over HTTP."""

import asyncio
import os
import subprocess
import sys
from collections import defaultdict, deque
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.contenders import Broken, environment, keep_on_core
from benchmarks.driver import Figures, obey, own_stdout
from benchmarks.scene import KEY, MODEL, WrongAnswer
from benchmarks.visitors import Visitors

CONFIG = """
model = "openai:{model}"

[providers.openai]
base_url = "{url}"
auth_profiles = [{{ id = "bench", api_key = "{key}" }}]

[gateway]
port = 0
"""
PATIENCE = 60  # seconds that a chat waits for a reply


@contextmanager
def serving(model: str, home: Path, settings: str = "", workers: int = 0) -> Generator[Mapping[str, Any]]:
    """A gateway on a home of its own, with the model at that URL: where it is, for `Visitors`.

    It is on the last core, unless it has workers, which each have a home as well. Raises `Broken`.
    """
    config = CONFIG.format(model=MODEL, url=model, key=KEY) + settings
    with ExitStack() as stack:
        child, said = stack.enter_context(_running("gateway", home / "gateway", config, is_alone=not workers))
        for number in range(workers):
            stack.enter_context(_running("worker", home / f"worker{number}", config, is_alone=False))
        token = (home / "gateway" / "token").read_text().strip()
        yield {"url": said.split()[-1], "token": token, "pid": child.pid}


@contextmanager
def _running(
    command: str, home: Path, config: str, *, is_alone: bool
) -> Generator[tuple[subprocess.Popen[bytes], str]]:
    """`denizen gateway` or `denizen worker` on that home, and what it said once it was ready."""
    home.mkdir()
    (home / "denizen.toml").write_text(config)
    program, environ = Path(sys.executable).with_name("denizen"), {**environment(home), "DENIZEN_HOME": str(home)}
    with (
        (home / "log").open("wb") as log,
        subprocess.Popen([program, command], env=environ, stdout=subprocess.PIPE, stderr=log) as child,
    ):
        if is_alone:
            keep_on_core(child.pid, -1)
        assert child.stdout
        try:
            if not (said := child.stdout.readline().decode()):
                raise Broken((home / "log").read_text().strip().splitlines()[-1])
            yield child, said
        finally:
            child.terminate()


class Gateway:
    """A gateway that runs, as its chats see it: a message is posted, its reply waited for."""

    def __init__(self, http: aiohttp.ClientSession, url: str, token: str, pid: int) -> None:
        self._http = http
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._process = Path(f"/proc/{pid}")
        self._after = defaultdict[str, int](int)
        self._unread = defaultdict[str, deque[str]](deque)

    async def post(self, chat: str, text: str) -> None:
        body = {"channel": "http", "chat": chat, "sender": "bench", "content": text}
        async with self._http.post(f"{self._url}/api/messages", json=body, headers=self._headers) as response:
            if response.status != 202:
                raise WrongAnswer(await response.text())

    async def reply(self, chat: str) -> str | None:
        unread = self._unread[chat]
        if not unread:
            query = {"chat": chat, "after": self._after[chat], "wait": PATIENCE}
            async with self._http.get(f"{self._url}/api/replies", params=query, headers=self._headers) as response:
                for reply in (await response.json())["replies"]:
                    unread.append(reply["content"])
                    self._after[chat] = reply["seq"]
        return unread.popleft() if unread else None

    def cpu(self) -> float:
        stat = (self._process / "stat").read_text().rpartition(")")[2].split()
        return sum(map(int, stat[11:13])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> int:
        return int((self._process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


class HttpVisitors:
    """The visitors of whichever gateway a command names."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http
        self._visitors: dict[str, Visitors] = {}

    async def visit(self, how: str, place: Mapping[str, Any], **arguments: Any) -> Figures:
        """Carry out one command of `Visitors`' at the gateway that `serving` started."""
        if place["url"] not in self._visitors:
            self._visitors[place["url"]] = Visitors(Gateway(self._http, **place))
        return await self._visitors[place["url"]].commands()[how](**arguments)


async def build() -> HttpVisitors:
    return HttpVisitors(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))


if __name__ == "__main__":
    replies = own_stdout()
    with asyncio.Runner() as runner:
        obey({"visit": runner.run(build()).visit}, (), runner, replies)
