"""The library's entry points."""

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import say

from denizen import run_agent_sync
from denizen.errors import DenizenError


async def test_blocking_inside_an_event_loop_says_what_to_do(agent_of: MakeAgent) -> None:
    with pytest.raises(DenizenError, match="await run_agent"):
        run_agent_sync("hi", agent=agent_of(say("never")))
