"""The wire clients pass the suite that every model passes, over real HTTP."""

import pytest

from denizen.errors import ModelError
from denizen.models.anthropic import AnthropicModel
from denizen.models.gemini import GeminiModel
from denizen.models.openai import OpenAIModel
from denizen.models.responses import ResponsesModel
from denizen.ports import KnownModel
from denizen.testing import (
    LoopbackAnthropic,
    LoopbackGemini,
    LoopbackOpenAI,
    LoopbackResponses,
    ModelConformance,
    Step,
)
from denizen.testing.conformance_model import Line, Play
from denizen.testing.loopback import LoopbackServer


def _queue(server: LoopbackServer, lines: tuple[Line, ...]) -> None:
    for line in lines:
        if isinstance(line, ModelError):
            server.fail(line.status, line.message)
        elif line is None:
            server.send(Step.STALL)
        else:
            server.say(line)


class TestAnthropicModel(ModelConformance):
    @pytest.fixture
    def play(self, loopback_anthropic: LoopbackAnthropic) -> Play:
        def play(*lines: Line) -> KnownModel:
            _queue(loopback_anthropic, lines)
            return AnthropicModel("claude-sonnet-4-5", api_key="key", base_url=loopback_anthropic.base_url)

        return play


class TestOpenAIModel(ModelConformance):
    @pytest.fixture
    def play(self, loopback_openai: LoopbackOpenAI) -> Play:
        def play(*lines: Line) -> KnownModel:
            _queue(loopback_openai, lines)
            return OpenAIModel("gpt-5-mini", api_key="key", base_url=loopback_openai.base_url)

        return play


class TestGeminiModel(ModelConformance):
    @pytest.fixture
    def play(self, loopback_gemini: LoopbackGemini) -> Play:
        def play(*lines: Line) -> KnownModel:
            _queue(loopback_gemini, lines)
            return GeminiModel("gemini-2.5-flash", api_key="key", base_url=loopback_gemini.base_url)

        return play


class TestResponsesModel(ModelConformance):
    @pytest.fixture
    def play(self, loopback_responses: LoopbackResponses) -> Play:
        def play(*lines: Line) -> KnownModel:
            _queue(loopback_responses, lines)
            return ResponsesModel("gpt-5-mini", api_key="key", base_url=loopback_responses.base_url)

        return play
