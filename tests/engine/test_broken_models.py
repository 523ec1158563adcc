"""Models that don't keep to their contract: the turn still ends, and what came after the end is not heard."""

from collections.abc import AsyncIterator

import pytest
from tests.engine.conftest import MakeAgent
from tests.engine.scene import Host, say

from denizen import run_agent
from denizen.errors import ModelError
from denizen.events import Done, Finished, LlmStream, StreamEvent, TextDelta
from denizen.ports import Limits, ModelRequest


class Says:
    """A model whose stream is just these events."""

    name, local = "test:says", True

    def __init__(self, *events: StreamEvent) -> None:
        self._events = events
        self.left = False

    def limits(self, session_key: str = "") -> Limits:
        return Limits()

    async def close(self) -> None:
        pass

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        try:
            for event in self._events:
                yield event
        finally:
            self.left = True


async def test_a_stream_without_an_end_is_a_failure_of_the_model(agent_of: MakeAgent, host: Host) -> None:
    with pytest.raises(ModelError, match="without saying how"):
        await run_agent("hi", agent=agent_of(model=Says()), io=host)
    assert isinstance(host.events[-1], Done)
    assert host.events[-1].result.stop_reason == "error"


async def test_what_comes_after_the_end_of_an_answer_is_not_heard(agent_of: MakeAgent, host: Host) -> None:
    model = Says(Finished(say("first")), TextDelta("more"), Finished(say("second")))
    result = await run_agent("hi", agent=agent_of(model=model), io=host)
    assert result.reply == "first"
    assert host.of(LlmStream) == []


async def test_a_stream_is_closed_as_soon_as_its_answer_is_there(agent_of: MakeAgent, host: Host) -> None:
    model = Says(Finished(say("first")), TextDelta("more"))
    await run_agent("hi", agent=agent_of(model=model), io=host)
    assert model.left
