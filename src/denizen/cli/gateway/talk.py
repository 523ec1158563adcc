"""`denizen chat --gateway`: a chat with the gateway."""

import asyncio
import sys
from pathlib import Path

from denizen.cli.gateway.client import Client
from denizen.cli.gateway.exchange import RETRY_DELAY_S, Exchange, show
from denizen.cli.home import home
from denizen.cli.output import say, say_error
from denizen.cli.turns import run
from denizen.errors import DenizenError
from denizen.runtime.cancellation import run_until_first
from denizen.runtime.clock import SystemClock
from denizen.worlds.commands import usages

_QUIT = "/quit"


def talk(chat: str) -> int:
    """Talk in a chat; the status is the last reply's. From a pipe, each line waits for the reply to the one before."""
    client, status = Client(home()), 0
    exchange = Exchange(client, chat)
    with asyncio.Runner() as runner:
        run(runner, exchange.skip())
        if sys.stdin.isatty():
            say(f"chat {chat} · {client.running.url} · /help lists the commands · {_QUIT} or Ctrl-D leaves", dim=True)
            # input is sent at once, even while a reply is pending
            run(runner, run_until_first(_read(exchange), _follow(exchange)))
            return 0
        for text in filter(None, map(str.strip, sys.stdin)):
            status = run(runner, _send(exchange, text))
    return status


async def _send(exchange: Exchange, text: str) -> int:
    return [show(reply) async for reply in exchange.say(text)][-1]


async def _read(exchange: Exchange) -> None:
    from denizen.cli.completion import PromptCompleter
    from denizen.cli.editor import Editor

    completer = PromptCompleter({**usages("chats"), "quit": _QUIT}, {}, Path.cwd())
    editor = Editor(home() / "history", completer, SystemClock())
    while (text := await editor.read()) is not None and text.strip() != _QUIT:
        try:
            if text.strip():
                await exchange.post(text.strip())
        except DenizenError as error:
            say_error(error)
            editor.draft = text


async def _follow(exchange: Exchange) -> None:
    """Show what comes above the prompt, until cancelled; a gateway that went away is waited for."""
    from prompt_toolkit.application import run_in_terminal

    gone = False
    while True:
        try:
            for reply in await exchange.replies():
                await run_in_terminal(lambda reply=reply: show(reply))
            gone = False
        except DenizenError as error:
            if not gone:
                await run_in_terminal(lambda error=error: say_error(error))
            gone = True
            await SystemClock().sleep(RETRY_DELAY_S)
