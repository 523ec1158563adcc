"""pytest fixtures: model servers on loopback, real HTTP, whose replies a test chooses.

pytest loads this in every project that has Denizen installed, so it imports nothing until a test asks for a server.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from denizen.testing.loopback import LoopbackAnthropic, LoopbackOpenAI


@pytest.fixture
def loopback_anthropic() -> "Iterator[LoopbackAnthropic]":
    """A server that speaks Anthropic Messages."""
    from denizen.testing.loopback import LoopbackAnthropic

    with LoopbackAnthropic() as server:
        yield server


@pytest.fixture
def loopback_openai() -> "Iterator[LoopbackOpenAI]":
    """A server that speaks OpenAI Chat Completions."""
    from denizen.testing.loopback import LoopbackOpenAI

    with LoopbackOpenAI() as server:
        yield server
