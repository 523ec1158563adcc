"""Calls of a model in one line."""

from collections.abc import Sequence

import msgspec

from denizen.errors import ModelError
from denizen.events import Failed, Finished, StreamEvent
from denizen.messages import AssistantMessage, Message, Text, UserMessage
from denizen.models.wire import WireModel
from denizen.ports import ModelRequest

ASKED = ModelRequest([UserMessage([Text("Hi")], "m1")], stream=True)


def request(*messages: Message, **fields: object) -> ModelRequest:
    """A request for a stream with these messages."""
    return msgspec.structs.replace(ASKED, messages=messages or ASKED.messages, **fields)


async def call(model: WireModel, asked: ModelRequest = ASKED) -> list[StreamEvent]:
    """All events of a call; the model is closed afterwards."""
    try:
        return [event async for event in model.stream(asked)]
    finally:
        await model.close()


def answer(events: Sequence[StreamEvent]) -> AssistantMessage:
    """The message that a call ended with."""
    assert isinstance(events[-1], Finished), events[-1]
    return events[-1].message


def failure(events: Sequence[StreamEvent]) -> ModelError:
    """The failure that a call ended with."""
    assert isinstance(events[-1], Failed), events[-1]
    return events[-1].error
