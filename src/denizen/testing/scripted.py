"""A model that plays a script."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import msgspec

from denizen.errors import ModelError
from denizen.events import Failed, Finished, StreamEvent
from denizen.messages import AssistantMessage, Text
from denizen.models.answer_parts import events_of
from denizen.ports import Limits, ModelRequest
from denizen.text.plural import counted

Scripted = AssistantMessage | ModelError | str
Line = Scripted | Callable[[ModelRequest], Scripted | Awaitable[Scripted]]


class ScriptedModel:
    """Plays `script` in order: messages, texts, failures, or functions of the request that give (or await) one.

    `requests` are the ones it got, each with the messages that it had then. Past the script's end it fails.
    """

    def __init__(
        self, script: Iterable[Line] = (), *, limits: Limits | None = None, name: str = "test:scripted"
    ) -> None:
        self.name = name
        self.local = False
        self.requests: list[ModelRequest] = []
        self._script = iter(script)
        self._limits = limits or Limits()

    def limits(self, session_key: str = "") -> Limits:
        """The limits that it was given."""
        return self._limits

    async def close(self) -> None:
        """Nothing to give back."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """The next reply, in pieces where the request asks for them."""
        self.requests.append(msgspec.structs.replace(request, messages=[*request.messages]))
        line = next(self._script, None)
        reply = line(request) if callable(line) else line
        if isinstance(reply, Awaitable):
            reply = await reply
        if isinstance(reply, str):
            reply = AssistantMessage([Text(reply)], self.name)
        if isinstance(reply, AssistantMessage):
            if request.stream:
                for event in events_of(reply):
                    yield event
                    await asyncio.sleep(0)
            yield Finished(reply)
        else:
            made = counted(len(self.requests) - 1, "call")
            yield Failed(reply or ModelError(f"{type(self).__name__} has no replies left ({made} made)"))
