"""The gateway is killed again and again while messages come in: each is answered once, in order."""

import asyncio
import re
from collections import Counter
from pathlib import Path

import aiohttp
from tests.cli.gateway import PATIENCE, GatewayProgram, key_of
from tests.cli.model import Model

from denizen.entries import UserEntry
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore
from denizen.testing import LoopbackRequest

CHATS = ("ann", "ben", "cleo")
MESSAGES = [f"message-{number}" for number in range(8)]
KILLS_AT = {2, 3, 7, 12, 18, 25}
"""The model calls, by number, during which the gateway is killed."""


def answer_of(request: LoopbackRequest) -> str:
    """A reply that names the last message."""
    words = [message["content"] for message in request.json["messages"] if message["role"] == "user"]
    return f"reply to {re.findall(r'[a-z]+/message-[0-9]+', str(words[-1]))[-1]}"


async def test_every_message_is_answered_once_and_in_order(home: Path, environ: dict[str, str], model: Model) -> None:
    gateway, calls = GatewayProgram(home, environ), 0

    def answer(request: LoopbackRequest) -> str:
        nonlocal calls
        calls += 1
        if calls in KILLS_AT:
            gateway.kill()
        return answer_of(request)

    model.server.otherwise = answer
    over = asyncio.Event()

    async def keep_running() -> None:
        while not over.is_set():
            await gateway.start()
            await gateway.process.wait()

    async def post(chat: str, content: str) -> None:
        """As a client does that must not lose it: with an id, until it is accepted."""
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    status, answer = await gateway.post(chat, f"{chat}/{content}", id=f"{chat}-{content}")
                    assert (status, answer["session_key"]) == (202, key_of(chat))
                    return
                except (aiohttp.ClientError, FileNotFoundError):
                    await asyncio.sleep(0.02)  # until the next one listens

    async def talk(chat: str) -> list[dict[str, str]]:
        for content in MESSAGES:
            await post(chat, content)
        while True:
            try:
                return await gateway.replies(chat, len(MESSAGES))
            except (aiohttp.ClientError, FileNotFoundError):
                await asyncio.sleep(0.02)

    await_running = asyncio.create_task(keep_running())
    found = await asyncio.gather(*map(talk, CHATS))
    over.set()
    await gateway.end()
    await await_running

    assert calls > max(KILLS_AT)
    for chat, replies in zip(CHATS, found, strict=True):
        assert [reply["in_reply_to"] for reply in replies] == [f"{chat}-{content}" for content in MESSAGES]
        assert [reply["content"] for reply in replies] == [f"reply to {chat}/{content}" for content in MESSAGES]
        assert {reply["state"] for reply in replies} == {"sent"}
        entries = await JsonlStore(home / "sessions", clock=SystemClock()).read(key_of(chat))
        said = Counter(entry.message.id for entry in entries if isinstance(entry, UserEntry))
        assert said == Counter(f"{chat}-{content}" for content in MESSAGES)
