"""`denizen status`: whether a gateway runs, where, and how it is."""

import asyncio

import click
import msgspec

from denizen.cli.gateway.client import Client
from denizen.cli.home import home
from denizen.cli.output import write
from denizen.worlds.chat.http.status import Status


@click.command()
def status() -> int:
    """Show whether a gateway runs on this home, where it listens, and what is queued."""
    client = Client(home())
    found = msgspec.convert(asyncio.run(client.get("/api/status")), Status)
    write(f"running: process {client.running.pid}, {client.running.url}\n")
    write("".join(f"{line}\n" for line in found.lines()))
    return 0
