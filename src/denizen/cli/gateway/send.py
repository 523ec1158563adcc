"""`denizen send`: say something to the gateway, and print its reply."""

import asyncio
import getpass
from uuid import uuid4

import click

from denizen.cli.gateway.client import Client
from denizen.cli.home import home
from denizen.cli.output import write
from denizen.cli.text import printable
from denizen.worlds.chat.queue import ALSO

_WAIT = 30
"""Seconds that one request waits for the reply."""


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--chat", default="home", show_default=True, metavar="NAME", help="The chat, which is a session.")
def send(text: tuple[str, ...], chat: str) -> int:
    """Send a message to the gateway, wait for the reply and print it."""
    return asyncio.run(_send(" ".join(text), chat))


async def _send(text: str, chat: str) -> int:
    client, message_id = Client(home()), uuid4().hex
    query = {"channel": "cli", "chat": chat}
    after = 0
    while found := (await client.get("/api/replies", {**query, "after": after}))["replies"]:
        after = found[-1]["seq"]
    body = {"channel": "cli", "chat": chat, "sender": getpass.getuser(), "content": text, "id": message_id}
    await client.post("/api/messages", body)
    while True:
        found = (await client.get("/api/replies", {**query, "after": after, "wait": _WAIT}, wait=_WAIT))["replies"]
        for reply in found:
            after = reply["seq"]
            if message_id in (reply["in_reply_to"], *reply.get(ALSO, ())):
                write(printable(reply["content"]).rstrip("\n") + "\n")
                return 1 if reply["state"] == "failed" else 0
