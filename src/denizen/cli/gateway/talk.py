"""`denizen chat --gateway`: a chat with the gateway."""

import asyncio
import sys

from denizen.cli.gateway.client import Client
from denizen.cli.gateway.exchange import Exchange, show
from denizen.cli.home import home


def talk(chat: str) -> int:
    """Send each line that is entered, and print what comes back; the status of the last reply."""
    exchange, status = Exchange(Client(home()), chat), 0
    with asyncio.Runner() as runner:
        runner.run(exchange.skip())
        while (text := _read()) is not None:
            if text.strip():
                status = runner.run(_say(exchange, text.strip()))
    return status


async def _say(exchange: Exchange, text: str) -> int:
    return [show(reply) async for reply in exchange.say(text)][-1]


def _read() -> str | None:
    if not sys.stdin.isatty():
        return sys.stdin.readline() or None
    import readline  # noqa: F401  # lines can be edited

    try:
        return input("> ")
    except EOFError:
        return None
