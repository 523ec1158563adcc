"""A chat with the gateway: what is said in it, and what comes back."""

import getpass
from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

from denizen.cli.gateway.client import Client
from denizen.cli.output import write
from denizen.cli.text import printable
from denizen.worlds.chat.gateway import COMMANDS
from denizen.worlds.chat.queue import ALSO

_WAIT = 30
"""Seconds that one request waits for the reply."""


class Exchange:
    """A chat of the channel `cli`."""

    def __init__(self, client: Client, chat: str) -> None:
        self._client = client
        self._query = {"channel": "cli", "chat": chat}
        self._after = 0
        self._last = ""

    async def skip(self) -> None:
        """Leave out what came before."""
        while await self._replies():
            pass

    async def say(self, text: str) -> AsyncGenerator[dict[str, Any]]:
        """Send a message; what comes in the chat until its reply, or a question of its turn.

        After `/approve` or `/deny` that is the reply to the message before.
        """
        message_id = uuid4().hex
        command = text.strip().partition(" ")[0] in COMMANDS
        awaited = {message_id, self._last} if command and self._last else {message_id}
        self._last = self._last if command else message_id
        body = {**self._query, "sender": getpass.getuser(), "content": text, "id": message_id}
        await self._client.post("/api/messages", body)
        while True:
            for reply in await self._replies(wait=_WAIT):
                yield reply
                if awaited & {reply["in_reply_to"], *reply.get(ALSO, ())}:
                    return

    async def _replies(self, wait: int = 0) -> list[dict[str, Any]]:
        query = {**self._query, "after": self._after, "wait": wait}
        found = (await self._client.get("/api/replies", query, wait=wait))["replies"]
        self._after = found[-1]["seq"] if found else self._after
        return found


def show(reply: dict[str, Any]) -> int:
    """Print a reply; the exit status."""
    write(printable(reply["content"]).rstrip("\n") + "\n")
    return 1 if reply["state"] == "failed" else 0
