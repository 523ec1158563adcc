"""The pairing routes."""

from pathlib import Path

from tests.worlds.chat.conftest import Serve
from tests.worlds.chat.http.test_http import reached
from tests.worlds.chat.turns.test_sender_access import NOBODY, accepted, code_of, written

from denizen.testing import MemoryChannel


async def test_sender_is_listed_approved_and_revoked(serve: Serve, home: Path) -> None:
    async with serve("welcome", channels=[MemoryChannel()], allow=NOBODY) as scene, reached(scene, home) as client:
        await accepted(scene, written("hello", "eve"))
        code = await code_of(scene, "eve")
        status, listed = await client.ask("GET", "/api/pairings")
        [eve] = listed["pairings"]
        assert (status, eve["channel"], eve["sender"], eve["code"], eve["approved_at"]) == (
            200,
            "memory",
            "eve",
            code,
            0,
        )
        status, answer = await client.ask("POST", "/api/pairings", json={"type": "approve", "code": code})
        assert (status, answer["approved"]["sender"]) == (200, "eve")
        status, answer = await client.ask("POST", "/api/pairings", json={"type": "approve", "code": code})
        assert (status, code in answer["error"]["message"]) == (404, True)
        assert await accepted(scene, written("hello", "eve")) == [True]
        for expected in (200, 404):
            status, _ = await client.ask("POST", "/api/pairings", json={"type": "revoke", "who": "memory:eve"})
            assert status == expected
        assert (await client.ask("POST", "/api/pairings", json={"type": "approve"}))[0] == 400
