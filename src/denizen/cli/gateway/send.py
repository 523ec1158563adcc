"""`denizen send`: say something to the gateway, and print its reply."""

import asyncio

import click

from denizen.cli.gateway.client import Client
from denizen.cli.gateway.exchange import Exchange, show
from denizen.cli.home import home


@click.command()
@click.argument("text", nargs=-1, required=True)
@click.option("--chat", default="home", show_default=True, metavar="NAME", help="The chat, which is a session.")
def send(text: tuple[str, ...], chat: str) -> int:
    """Send a message to the gateway, wait for the reply and print it. @path attaches a file."""
    return asyncio.run(_send(" ".join(text), chat))


async def _send(text: str, chat: str) -> int:
    exchange = Exchange(Client(home()), chat)
    await exchange.skip()
    replies = [reply async for reply in exchange.say(text)]
    return show(replies[-1])
