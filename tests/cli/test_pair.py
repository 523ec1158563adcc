"""`denizen pair`, with and without a running gateway."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from tests.cli.conftest import Run
from tests.cli.gateway import GatewayProgram, share
from tests.cli.model import USAGE, Model

from denizen.messages import AssistantMessage, ToolCall
from denizen.ports import InboundMessage
from denizen.runtime.clock import SystemClock
from denizen.worlds.chat.ledger import pairings
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.chat.ledger.postgres_ledger import PostgresLedger
from denizen.worlds.chat.ledger.sqlite_file import SqliteFile

EVE = InboundMessage("irc", "eve", "eve", "hello", "agent:main:channel:irc:account:default:peer:direct:eve")


async def asked(database: Database) -> str:
    """Request a code as a stranger, and return it."""
    now = SystemClock().now().timestamp()
    try:
        assert await database.run(partial(pairings.request_code, message=EVE, now=now))
        [eve] = await database.read(partial(pairings.pairings, now=now))
        return eve.code
    finally:
        database.close()


def goes_on(denizen: Run, code: str) -> None:
    """List, approve and revoke the sender with this code."""
    assert f"waits with code {code}" in denizen("pair", "list").out
    ran = denizen("pair", "approve", code.lower())
    assert (ran.out, ran.status) == ("irc:eve may speak now.\n", 0), ran.err
    assert "paired" in denizen("pair", "list").out
    ran = denizen("pair", "approve", code)
    assert (ran.status, f"Pairing code {code} isn't open" in ran.err) == (1, True)
    assert denizen("pair", "revoke", "irc:eve").out == "irc:eve may no longer speak.\n"
    ran = denizen("pair", "revoke", "irc:eve")
    assert (ran.status, "irc:eve isn't paired" in ran.err) == (1, True)


async def test_sender_is_paired_while_the_gateway_runs(home: Path, gateway: GatewayProgram, denizen: Run) -> None:
    await gateway.end()
    code = await asked(Database(SqliteFile(home / "gateway.db"), SystemClock()))
    await gateway.start()
    await asyncio.to_thread(goes_on, denizen, code)


async def test_sender_is_paired_without_a_gateway(home: Path, denizen: Run) -> None:
    code = await asked(Database(SqliteFile(home / "gateway.db"), SystemClock()))
    await asyncio.to_thread(goes_on, denizen, code)


async def test_sender_is_paired_in_a_database(home: Path, denizen: Run, postgres_url: str) -> None:
    share(home, postgres_url)
    code = await asked(Database(PostgresLedger(postgres_url), SystemClock()))
    await asyncio.to_thread(goes_on, denizen, code)


@pytest.mark.parametrize("place", ["file", "server"])
async def test_all_data_of_a_sender_is_deleted(
    home: Path, model: Model, gateway: GatewayProgram, denizen: Run, request: pytest.FixtureRequest, *, place: str
) -> None:
    if place == "server":
        share(home, request.getfixturevalue("postgres_url"))
    (own := home / "workspace" / "own.txt").parent.mkdir()
    own.write_text("not received")
    await gateway.start()
    for sender in ("ann", "ben"):
        remember = ToolCall("", "remember", {"text": f"{sender} has a cat"})
        model.plays(AssistantMessage([remember], usage=USAGE, stop_reason="tool_calls"), "Kept.")
        await gateway.post(sender, "Remember it", sender=sender, id=sender, media=[str(own)])
        await gateway.replies(sender, 1)
    refused = await asyncio.to_thread(denizen, "pair", "forget", "http:ann", "--yes")
    assert "The gateway is running" in refused.err
    await gateway.end()

    shown = await asyncio.to_thread(denizen, "pair", "forget", "http:ann")
    assert (shown.status, "fact ann has a cat" in shown.err, "add --yes" in shown.err) == (2, True, True), shown.err
    forgotten = await asyncio.to_thread(denizen, "pair", "forget", "http:ann", "--yes")
    assert forgotten.out == "Deleted.\n", forgotten.err
    listed = (await asyncio.to_thread(denizen, "sessions", "list", "--json")).out
    assert ("peer:direct:ann" in listed, "peer:direct:ben" in listed) == (False, True)
    assert own.exists()

    model.plays("I remember Ben alone.")
    await gateway.start()
    assert (await gateway.post("ann", "Who are you?", sender="ann", id="ann"))[1]["accepted"]
    assert [reply["content"] for reply in await gateway.replies("ann", 1)] == ["I remember Ben alone."]
    assert ("ann has a cat" in str(model.requests[-1]), "ben has a cat" in str(model.requests[-1])) == (False, True)
    assert [reply["in_reply_to"] for reply in await gateway.replies("ben", 1)] == ["ben"]
