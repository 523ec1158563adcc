"""The model double passes the suite that other models pass."""

import asyncio

import pytest

from denizen.messages import AssistantMessage
from denizen.ports import KnownModel, ModelRequest
from denizen.testing import ModelConformance, ScriptedModel
from denizen.testing.conformance_model import Line, Play


async def never(_: ModelRequest) -> AssistantMessage:
    await asyncio.Event().wait()
    raise AssertionError


class TestScriptedModel(ModelConformance):
    @pytest.fixture
    def play(self) -> Play:
        def play(*lines: Line) -> KnownModel:
            return ScriptedModel([never if line is None else line for line in lines])

        return play
