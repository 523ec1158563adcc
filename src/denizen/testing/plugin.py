"""pytest fixtures: model servers on loopback, real HTTP, whose replies a test chooses.

pytest loads this in every project that has Denizen installed, so it imports nothing until a test asks for a server.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from denizen.testing.loopback import LoopbackAnthropic, LoopbackGemini, LoopbackOpenAI, LoopbackResponses


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


@pytest.fixture
def loopback_gemini() -> "Iterator[LoopbackGemini]":
    """A server that speaks Gemini's own format."""
    from denizen.testing.loopback import LoopbackGemini

    with LoopbackGemini() as server:
        yield server


@pytest.fixture
def loopback_responses() -> "Iterator[LoopbackResponses]":
    """A server that speaks OpenAI Responses."""
    from denizen.testing.loopback import LoopbackResponses

    with LoopbackResponses() as server:
        yield server
