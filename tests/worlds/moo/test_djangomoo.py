"""A player's connection to a real DjangoMOO server."""

from pathlib import Path

import pytest
from tests.worlds.moo.djangomoo import DjangoMoo

from denizen.worlds.moo.connection import connected

pytestmark = pytest.mark.needs("redis-server")


async def test_a_player_signs_in_looks_around_and_leaves(moo_server: DjangoMoo, tmp_path: Path) -> None:
    async with connected(moo_server.address("mason"), tmp_path) as connection:
        assert connection.name == "Mason"
        assert connection.room
        output = await connection.request("look")
        assert (output.problem, output.lines[0]) == ("", connection.room.name)
