"""A model that says again what a transcript says it said."""

from collections.abc import AsyncIterator, Callable

from denizen.errors import ModelError
from denizen.events import Failed, Finished, StreamEvent
from denizen.messages import AssistantMessage
from denizen.ports import Limits, ModelRequest


class Recorded:
    """Says what `reply` gives, whatever it is asked, until that is None; costs nothing, sees everything."""

    local = True

    def __init__(self, name: str, reply: Callable[[], AssistantMessage | None]) -> None:
        self.name = name
        self._reply = reply

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """The next reply; a failure where there are no more."""
        reply = self._reply()
        yield Finished(reply) if reply else Failed(ModelError("the recorded turn has no further reply", kind="unknown"))

    def limits(self, session_key: str = "") -> Limits:
        """No context is too long."""
        return Limits(window=10**9)

    async def close(self) -> None:
        """There is nothing to give back."""
