"""A chat with the gateway: what is said in it, and what comes back."""

import asyncio
import getpass
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from denizen.cli.attachments import attachments, unattached
from denizen.cli.gateway.client import Client
from denizen.cli.output import say, write
from denizen.cli.text import printable
from denizen.worlds.chat.gateway import COMMANDS, split_command
from denizen.worlds.chat.outbound import ALSO
from denizen.worlds.chat.questions import may_be_answer

_WAIT = 30
"""Seconds that one request waits for a reply."""
_NO_REPLY = (
    "No reply yet. A turn of this chat may still run, or wait for you: /approve, /deny and /stop overtake all messages."
)


class Exchange:
    """A chat of the channel `cli`."""

    def __init__(self, client: Client, chat: str) -> None:
        self._client = client
        self._query = {"channel": "cli", "chat": chat}
        self._after = 0

    async def skip(self) -> None:
        """Leave out what came before."""
        self._went_on((await self._client.get("/api/replies", {**self._query, "last": 1}))["replies"])

    async def post(self, text: str) -> str:
        """Send a message, with the files that it mentions: its id. Raises ConfigError for one that can't be used."""
        for notice in unattached(text):
            say(notice, dim=True)
        message_id = uuid4().hex
        media = msgspec.to_builtins(await asyncio.to_thread(attachments, text, Path("/")))
        body = {
            **self._query,
            "sender": getpass.getuser(),
            "content": text,
            "id": message_id,
            "media": media,
            "seen": self._after,
        }
        await self._client.post("/api/messages", body)
        return message_id

    async def say(self, text: str) -> AsyncGenerator[dict[str, Any]]:
        """Send a message; what comes in the chat until its reply, or a question of its turn.

        After `/approve` and the like that is whatever comes next: the turn goes on with an earlier message.
        """
        message_id, is_command = await self.post(text), split_command(text)[0] in COMMANDS or may_be_answer(text)
        waited = False
        while True:
            found = await self.replies()
            for reply in found:
                yield reply
                if is_command or message_id in {reply["in_reply_to"], *reply.get(ALSO, ())}:
                    return
            if not found and not waited:
                waited = True
                say(_NO_REPLY)

    async def replies(self) -> list[dict[str, Any]]:
        """What comes next in the chat; nothing, where nothing comes for a while."""
        query = {**self._query, "after": self._after, "wait": _WAIT}
        found = (await self._client.get("/api/replies", query, wait=_WAIT))["replies"]
        self._went_on(found)
        return found

    def _went_on(self, replies: list[dict[str, Any]]) -> None:
        self._after = replies[-1]["seq"] if replies else self._after


def show(reply: dict[str, Any]) -> int:
    """Print a reply; the exit status."""
    write(printable(reply["content"]).rstrip("\n") + "\n")
    return 1 if reply["state"] == "failed" else 0
