"""`denizen status`: whether a gateway runs, and where."""

import asyncio

import click

from denizen.cli.gateway.client import Client
from denizen.cli.home import home
from denizen.cli.output import write


@click.command()
def status() -> int:
    """Say whether a gateway runs on this home, and where it listens."""
    client = Client(home())
    asyncio.run(client.get("/healthz"))
    write(f"running: process {client.running.pid}, {client.running.url}\n")
    return 0
