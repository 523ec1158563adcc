"""A chat with the gateway: what is said in it, and what comes back."""

import asyncio
import getpass
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import msgspec

from denizen.cli.attachments import attachments, unattached
from denizen.cli.gateway.client import Client
from denizen.cli.output import say, write
from denizen.cli.text import printable
from denizen.runtime.clock import Clock, SystemClock
from denizen.worlds.chat.http.messages import MAX_REPLIES
from denizen.worlds.chat.http.server import GatewayAway
from denizen.worlds.chat.ledger.outbound import ALSO
from denizen.worlds.chat.ledger.questions import may_be_answer
from denizen.worlds.commands import split_command

_LONG_POLL_S = 30
"""Seconds that one request waits for a reply."""
RESTART_S = 60.0
"""Seconds that a gateway may take to restart."""
RETRY_DELAY_S = 1.0
"""Seconds before a gateway that doesn't answer is asked again."""
_NO_REPLY = (
    "No reply yet. A turn of this chat may still be running, or waiting for you; /approve, /deny and /stop act at once."
)

_T = TypeVar("_T")


class Exchange:
    """A chat of the channel `cli`."""

    def __init__(self, client: Client, chat: str, clock: Clock | None = None) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._query = {"channel": "cli", "chat": chat}
        self._after = 0

    async def skip(self) -> None:
        """Leave out what came before."""
        self._went_on(await self._last(1))

    async def post(self, text: str, message_id: str = "") -> dict[str, Any]:
        """Send a message, with the files that it mentions: its `id`, and whether it was `accepted` only now.

        Raises ConfigError for a file that can't be used.
        """
        for notice in unattached(text):
            say(notice, dim=True)
        media = msgspec.to_builtins(await asyncio.to_thread(attachments, text, Path("/")))
        body = {
            **self._query,
            "sender": getpass.getuser(),
            "content": text,
            "id": message_id or uuid4().hex,
            "media": media,
            "seen": self._after,
        }
        return await self._client.post("/api/messages", body)

    async def say(self, text: str, message_id: str = "") -> AsyncGenerator[dict[str, Any]]:
        """Send a message; what comes in the chat until its reply, or a question of its turn. A restart is waited for.

        After `/approve` and the like that is whatever comes next: the turn goes on with an earlier message. A message
        that was sent before, by its id, has the reply that it had.
        """
        message_id = message_id or uuid4().hex
        posted = await self._answered(message_id, partial(self.post, text, message_id))
        if not posted["accepted"]:
            for reply in await self._answered(message_id, partial(self._last, MAX_REPLIES)):
                if _answers(reply, message_id):
                    yield reply
                    return
        is_command = split_command(text)[0] == "stop" or may_be_answer(text)
        waited = False
        while True:
            found = await self._answered(message_id, self.replies)
            for reply in found:
                yield reply
                if is_command or _answers(reply, message_id):
                    return
            if not found and not waited:
                waited = True
                say(_NO_REPLY)

    async def replies(self) -> list[dict[str, Any]]:
        """What comes next in the chat; nothing, if nothing comes for a while."""
        query = {**self._query, "after": self._after, "wait": _LONG_POLL_S}
        found = (await self._client.get("/api/replies", query, wait=_LONG_POLL_S))["replies"]
        self._went_on(found)
        return found

    async def _last(self, count: int) -> list[dict[str, Any]]:
        return (await self._client.get("/api/replies", {**self._query, "last": count}))["replies"]

    async def _answered(self, message_id: str, ask: Callable[[], Awaitable[_T]]) -> _T:
        """The gateway's answer; while it restarts, it is asked again.

        Raises GatewayAway after `RESTART_S`, with the command that later gets the reply to this message.
        """
        away_since = None
        while True:
            try:
                return await ask()
            except GatewayAway as error:
                now = self._clock.monotonic()
                if away_since is None:
                    away_since = now
                    say(f"{error}\nWaiting up to {RESTART_S:.0f} s for it …", dim=True)
                elif now - away_since >= RESTART_S:
                    command = f"denizen send --chat {shlex.quote(self._query['chat'])} --id {shlex.quote(message_id)}"
                    later = f"To send the message again without doubling it, or to get its reply: {command} TEXT"
                    raise GatewayAway(f"{error}\n{later}") from error
                await self._clock.sleep(RETRY_DELAY_S)

    def _went_on(self, replies: list[dict[str, Any]]) -> None:
        self._after = replies[-1]["seq"] if replies else self._after


def _answers(reply: dict[str, Any], message_id: str) -> bool:
    return message_id in {reply["in_reply_to"], *reply.get(ALSO, ())}


def show(reply: dict[str, Any]) -> int:
    """Print a reply; the exit status."""
    write(printable(reply["content"]).rstrip("\n") + "\n")
    return 1 if reply["state"] == "failed" else 0
