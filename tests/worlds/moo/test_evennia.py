"""A world that Denizen wasn't written for: a real Evennia server, over telnet and SSH."""

import re
from pathlib import Path
from typing import Literal

import pytest
from tests.worlds.moo.evennia_server import Evennia

from denizen.errors import ConfigError
from denizen.worlds.moo.attribution import OutputTiming
from denizen.worlds.moo.connection import connected
from denizen.worlds.moo.server_text import CommandOutput

Transport = Literal["telnet", "ssh"]
both = pytest.mark.parametrize("transport", ["telnet", "ssh"])
PATIENT = OutputTiming(timeout=300, quiet=1.0, silence=100)
REFUSED = re.escape("“Username and/or password is incorrect.”")


@both
async def test_a_player_signs_in_looks_speaks_and_hears(evennia: Evennia, transport: Transport, tmp_path: Path) -> None:
    async with (
        connected(evennia.address("ann", transport), tmp_path, PATIENT) as ann,
        connected(evennia.address("bob", "telnet"), tmp_path, PATIENT) as bob,
    ):
        said = [(await anext(ann.lines)).text for _ in range(9)]
        assert "Welcome to game" in said[0]
        assert "You become ann." in said
        looked = await ann.request("look")
        assert (looked.problem, looked.lines[0], looked.lines[-1]) == ("", "Limbo", "Characters: keeper and bob")
        assert await ann.request("say hello") == CommandOutput("say hello", ['You say, "hello"'])
        async for line in bob.lines:
            if line.text == 'ann says, "hello"':
                break
        assert (await ann.request("xyzzy")).lines == ["Command 'xyzzy' is not available. Type \"help\" for help."]


@both
async def test_a_wrong_password_is_refused_in_the_servers_own_words(
    evennia: Evennia, transport: Transport, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=f"refused to sign ann in: {REFUSED}"):
        async with connected(evennia.address("ann", transport, "abracadabra"), tmp_path, PATIENT):
            pass
