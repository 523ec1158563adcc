"""The scripted model plays its script."""

import msgspec

from denizen.errors import ModelError
from denizen.events import Failed, Finished, StreamEvent, TextDelta, TextEnd, ToolCallDelta, ToolCallEnd
from denizen.messages import AssistantMessage, Message, Text, ToolCall, UserMessage
from denizen.ports import Limits, ModelRequest
from denizen.testing import ScriptedModel

HI = ModelRequest([UserMessage([Text("Hi")], "m1")])


async def play(model: ScriptedModel, request: ModelRequest = HI) -> list[StreamEvent]:
    return [event async for event in model.stream(request)]


async def test_texts_messages_and_failures_come_in_their_order() -> None:
    message = AssistantMessage([ToolCall("c1", "read", {})], stop_reason="tool_calls")
    error = ModelError("Slow down", kind="rate_limit")
    model = ScriptedModel(["Hello", message, error])
    assert await play(model) == [Finished(AssistantMessage([Text("Hello")], "test:scripted"))]
    assert await play(model) == [Finished(message)]
    assert await play(model) == [Failed(error)]


async def test_line_may_depend_on_the_request() -> None:
    async def later(request: ModelRequest) -> str:
        return f"{len(request.messages)} later"

    model = ScriptedModel([lambda request: f"{len(request.messages)} now", later])
    assert [(await play(model))[-1] for _ in range(2)] == [
        Finished(AssistantMessage([Text(text)], "test:scripted")) for text in ("1 now", "1 later")
    ]


async def test_answer_comes_in_pieces_where_they_are_asked_for() -> None:
    call = ToolCall("c1", "read", {"a": 1})
    model = ScriptedModel([AssistantMessage([Text("Hello, you"), call])])
    *told, last = await play(model, msgspec.structs.replace(HI, stream=True))
    assert told == [
        TextDelta("Hello, "),
        TextDelta("you"),
        TextEnd("Hello, you"),
        ToolCallDelta("c1", "read", '{"a":1}'),
        ToolCallEnd(call),
    ]
    assert isinstance(last, Finished)


async def test_requests_are_kept_as_they_were() -> None:
    model = ScriptedModel(["one", "two"])
    messages: list[Message] = [*HI.messages]
    await play(model, ModelRequest(messages))
    messages.append(UserMessage([Text("more")]))
    await play(model, ModelRequest(messages))
    assert [len(request.messages) for request in model.requests] == [1, 2]


async def test_script_s_end_is_a_failure() -> None:
    [event] = await play(ScriptedModel())
    assert isinstance(event, Failed)
    assert "no replies left" in event.error.message


def test_it_is_what_it_is_told_to_be() -> None:
    model = ScriptedModel(limits=Limits(window=100), name="test:small")
    assert (model.name, model.limits().window) == ("test:small", 100)
