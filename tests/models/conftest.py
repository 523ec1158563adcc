"""What tests of connections share."""

from collections.abc import AsyncIterator

import pytest
from tests.models.raw import nothing_left

from denizen.models.http import Http


@pytest.fixture
async def http() -> AsyncIterator[Http]:
    """Sends requests; afterwards nothing of them is left open, and nothing is under way."""
    async with nothing_left():
        http = Http()
        yield http
        await http.close()
