"""`denizen chat --gateway`: a chat with the gateway."""

import asyncio
import re
import sys

from denizen.cli.gateway.client import Client
from denizen.cli.gateway.exchange import RETRY_DELAY_S, Exchange, show
from denizen.cli.home import home
from denizen.cli.main import WRONG_USE
from denizen.cli.output import say, say_error
from denizen.cli.turns import run
from denizen.clock import SystemClock
from denizen.errors import DenizenError
from denizen.worlds.chat.gateway import COMMANDS

_HELP = {
    "/approve [words]": "allow what the agent asks about",
    "/deny [why]": "refuse it",
    "/stop [all]": "stop the turn; with all, subagents in the background, too",
    "/SERVER:PROMPT words": "say a prompt of an MCP server, filled in with the words",
    "/help": "show this",
    "/quit": "leave (also: Ctrl-D)",
}
_COMMAND = re.compile(r"(/[a-z]+)(?:[^\S\n].*)?")
_QUIT, _LIST = "/quit", "/help"


class UnknownCommand(DenizenError):
    """A line is no command of the gateway's: it isn't sent."""


def talk(chat: str) -> int:
    """Talk in a chat. From a pipe, each line waits for the reply to the one before.

    The status is the last reply's, or says that a line wasn't sent, as it is no command.
    """
    client, status, refused = Client(home()), 0, 0
    exchange = Exchange(client, chat)
    with asyncio.Runner() as runner:
        run(runner, exchange.skip())
        if sys.stdin.isatty():
            say(f"chat {chat} · {client.running.url} · {', '.join(COMMANDS)} · {_QUIT} or Ctrl-D leaves", dim=True)
            run(runner, _typed(exchange))
            return 0
        for text in filter(None, map(str.strip, sys.stdin)):
            try:
                status = run(runner, _said(exchange, text))
            except UnknownCommand as error:
                say_error(error)
                refused = WRONG_USE
    return refused or status


async def _said(exchange: Exchange, text: str) -> int:
    if words := _answered_here(text):
        say(words)
        return 0
    return [show(reply) async for reply in exchange.say(text)][-1]


async def _typed(exchange: Exchange) -> None:
    """Send what is entered at once, also while a reply is awaited, and show what comes, until the person leaves."""
    tasks = [asyncio.create_task(_read(exchange)), asyncio.create_task(_follow(exchange))]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _read(exchange: Exchange) -> None:
    from denizen.cli.editor import Editor

    editor = Editor(home() / "history", [*COMMANDS, _LIST, _QUIT], SystemClock())
    while (text := await editor.read()) is not None and text.strip() != _QUIT:
        try:
            if words := _answered_here(text.strip()):
                say(words)
            elif text.strip():
                await exchange.post(text.strip())
        except DenizenError as error:
            say_error(error)
            editor.draft = text


def _answered_here(text: str) -> str:
    """What to say to a command of this program's. Raises UnknownCommand: to the gateway, it would be a message."""
    command = _COMMAND.fullmatch(text)
    if not command or command[1] in COMMANDS:
        return ""
    if command[1] == _LIST:
        return "\n".join(f"{usage:22}{does}" for usage, does in _HELP.items())
    from denizen.cli.slash import COMMANDS as LOCAL

    if command[1].removeprefix("/") in LOCAL:
        raise UnknownCommand(f"{command[1]} isn't available in a chat with the gateway. {_LIST} lists what is.")
    raise UnknownCommand(f"There is no {command[1]}, and nothing was sent. {_LIST} lists the commands.")


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
