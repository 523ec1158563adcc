"""`denizen send`: say something to the gateway, and print its reply."""

import asyncio
from uuid import uuid4

import click

from denizen.cli.gateway.client import Client
from denizen.cli.gateway.exchange import Exchange, show
from denizen.cli.home import home
from denizen.cli.output import say


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--chat", default="home", show_default=True, metavar="NAME", help="The chat, which is a session.")
@click.option(
    "--id",
    "message_id",
    default="",
    metavar="ID",
    help="The message's id; a message that is sent again with its id counts once.",
)
def send(text: tuple[str, ...], chat: str, message_id: str) -> int:
    """Send a message to the gateway, wait for the reply and print it. @path attaches a file.

    The message's id is printed to standard error. If the gateway restarts meanwhile, the command waits for it.
    """
    return asyncio.run(_send(" ".join(text), chat, message_id or uuid4().hex))


async def _send(text: str, chat: str, message_id: str) -> int:
    exchange = Exchange(Client(home()), chat)
    await exchange.skip()
    say(f"message {message_id}", dim=True)
    replies = [reply async for reply in exchange.say(text, message_id)]
    return show(replies[-1])
