"""pytest fixtures: model servers on loopback, real HTTP, whose replies a test chooses.

pytest loads this in every project that has Denizen installed, so it imports nothing until a test asks for a server.
"""

from collections.abc import Iterator
from typing import Any

import pytest


def _server(name: str) -> Any:
    @pytest.fixture(name=f"loopback_{name.lower()}")
    def server() -> Iterator[Any]:
        from denizen.testing import loopback

        with getattr(loopback, f"Loopback{name}")() as running:
            yield running

    server.__doc__ = f"A server that speaks the wire format of {name}."
    return server


loopback_anthropic = _server("Anthropic")
loopback_gemini = _server("Gemini")
loopback_openai = _server("OpenAI")
loopback_responses = _server("Responses")
