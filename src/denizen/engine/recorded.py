"""A model that says again what a transcript says it said."""

from collections.abc import AsyncIterator, Iterable

from denizen.errors import ModelError
from denizen.events import Failed, Finished, StreamEvent
from denizen.messages import AssistantMessage
from denizen.ports import Limits, ModelRequest


class Recorded:
    """Plays recorded replies in order, whatever it is asked; costs nothing, sees everything."""

    local = True

    def __init__(self, name: str, replies: Iterable[AssistantMessage]) -> None:
        self.name = name
        self._replies = iter(replies)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """The next reply; a failure where there are no more."""
        reply = next(self._replies, None)
        yield Finished(reply) if reply else Failed(ModelError("the recorded turn has no further reply", kind="unknown"))

    def limits(self) -> Limits:
        """No context is too long."""
        return Limits(window=10**9)

    async def close(self) -> None:
        """There is nothing to give back."""
