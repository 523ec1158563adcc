"""`denizen pair`: list, approve and revoke the senders who may write to the agent."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click

from denizen.cli.gateway.client import ask_gateway_or_ledger
from denizen.cli.gateway.forget import forget
from denizen.cli.output import print_table, say, write
from denizen.cli.text import one_line
from denizen.config.settings import Config
from denizen.errors import DenizenError
from denizen.runtime.clock import Clock
from denizen.worlds.chat.delivery.outbox import Outbox
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.ledger.pairings import Pairing
from denizen.worlds.chat.turns.people import People
from denizen.worlds.chat.turns.sender_access import SenderAccess, no_open_code_error, not_paired_error

T = TypeVar("T")


@click.group()
def pair() -> None:
    """Approve senders on the gateway's channels who aren't in the configuration.

    An unknown sender who writes to the agent gets a code. They give you the code, and you approve it.
    """


pair.add_command(forget)


@pair.command("list")
def list_pairings() -> None:
    """List paired senders, and those who are waiting for approval."""
    found = _run(None, list[Pairing], SenderAccess.pairings)
    if not found:
        say("No senders are paired or waiting.")
        return
    rows = [
        (one_line(f"{each.channel}:{each.sender}"), "paired" if each.approved_at else f"waits with code {each.code}")
        for each in found
    ]
    print_table(("who", "state"), rows, elastic="who")


@pair.command()
@click.argument("code")
def approve(code: str) -> None:
    """Approve the sender with this code, and greet them in their chat."""
    paired = _run({"type": "approve", "code": code}, Pairing, lambda access: access.approve(code))
    if paired is None:
        raise DenizenError(no_open_code_error(code))
    write(f"{one_line(f'{paired.channel}:{paired.sender}')} may speak now.\n")


@pair.command()
@click.argument("who")
def revoke(who: str) -> None:
    """Remove a paired sender (CHANNEL:SENDER, as listed). Their next message gets a new code."""
    if not _run({"type": "revoke", "who": who}, str, lambda access: access.revoke(who)):
        raise DenizenError(not_paired_error(who))
    write(f"{one_line(who)} may no longer speak.\n")


def _run(body: Any, kind: Any, in_ledger: Callable[[SenderAccess], Awaitable[T]]) -> T:
    def on_access(config: Config, database: Database, clock: Clock) -> Awaitable[T]:
        return in_ledger(SenderAccess(config, People(config), Outbox(database, {}, clock=clock), clock))

    return asyncio.run(ask_gateway_or_ledger("/api/pairings", body, kind, on_access))
