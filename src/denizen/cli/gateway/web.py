"""`denizen web`: the agent's page, in a browser."""

import asyncio
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import click

from denizen.cli.gateway.client import Client
from denizen.cli.gateway.gateway import serve_until_stopped
from denizen.cli.home import home
from denizen.cli.options import MODEL, WORKPLACE, CommandOptions, command_options
from denizen.cli.output import say, write
from denizen.errors import DenizenError
from denizen.trusted.programs import find_program, trusted_environ
from denizen.worlds.chat.http.server import find_running


@click.command()
@click.option("--no-open", is_flag=True, help="Only print the link.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="The port, if it starts a gateway.")
@command_options((MODEL, WORKPLACE), profile="gateway")
def web(port: int | None, *, no_open: bool, options: CommandOptions) -> int:
    """Open the agent's page in a browser.

    The link signs in one browser, once, within five minutes. If no gateway runs, one starts in the foreground.
    """
    show = partial(_show_link, home(), opens=not no_open)
    if not find_running(home()):
        return serve_until_stopped("", port, options, show)
    asyncio.run(show())
    return 0


async def _show_link(folder: Path, *, opens: bool) -> None:
    client = Client(folder)
    try:
        made = await client.post("/api/sign-in-links", {})
    except DenizenError as error:
        say(f"Can't make a link yet: {error} Try again: denizen web", "yellow")
        return
    address = client.running.url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    link = f"{address}/#sign-in={made['code']}"
    write(f"{link}\n")
    if opens:
        _open(link)


def _open(link: str) -> None:
    """Open the link in the user's browser, if there is a screen."""
    is_mac = sys.platform == "darwin"
    if not (is_mac or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return
    program = find_program("open" if is_mac else "xdg-open", os.environ, otherwise="-")
    if program != "-":
        quiet = subprocess.DEVNULL
        subprocess.Popen(
            [program, link], env=trusted_environ(os.environ), stdout=quiet, stderr=quiet, start_new_session=True
        )
