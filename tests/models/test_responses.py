"""Answers of the Responses API as its documentation has them, where the recordings have none.

https://platform.openai.com/docs/api-reference/responses-streaming
"""

import json
from typing import Any

import pytest
from tests.models.calls import answer, call, failure, request
from tests.models.test_responses_requests import HI, model

from denizen.errors import ErrorKind
from denizen.events import StreamEvent, TextDelta, TextEnd, ThinkingDelta, ThinkingEnd, ToolCallDelta, ToolCallEnd
from denizen.messages import AssistantMessage, Opaque, Text, Thinking, ToolCall, Usage
from denizen.testing import LoopbackResponses

Json = dict[str, Any]

REFUSED = {"type": "refusal", "refusal": "I can't help with that."}
REFUSAL = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [REFUSED]}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": '{"path":"a"}'}


def text(*texts: str, **fields: Any) -> Json:
    content = [{"type": "output_text", "text": each, "annotations": []} for each in texts]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content, **fields}


def response(*items: Json, status: str = "completed", **fields: Any) -> Json:
    return {"id": "resp_1", "object": "response", "status": status, "output": [*items], **fields}


def ended(whole: Json) -> Json:
    return {"type": f"response.{whole['status']}", "response": whole}


def added(place: int, item: Json) -> Json:
    return {"type": "response.output_item.added", "output_index": place, "item": item}


def part_added(summary: int) -> Json:
    return {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": summary}


def delta(kind: str, place: int, piece: str) -> Json:
    return {"type": f"response.{kind}.delta", "output_index": place, "delta": piece}


async def streamed(server: LoopbackResponses, *events: Json) -> list[StreamEvent]:
    """What a client makes of a stream of these events."""
    server.send(*(b"data: %s\n\n" % json.dumps(event).encode() for event in events))
    return await call(model(server))


async def whole(server: LoopbackResponses, body: Json) -> list[StreamEvent]:
    """What a client makes of an answer in one piece."""
    server.send(json.dumps(body).encode(), content_type="application/json")
    return await call(model(server), request(stream=False))


@pytest.fixture(params=[True, False], ids=["streamed", "in one piece"])
def replies(request: pytest.FixtureRequest, loopback_responses: LoopbackResponses) -> Any:
    """Makes a client's events of a response, in either form; nothing is streamed before the last event."""

    async def replies(body: Json) -> list[StreamEvent]:
        if request.param:
            return await streamed(loopback_responses, ended(body))
        return await whole(loopback_responses, body)

    return replies


# How an answer ends


async def test_refusal_is_one_with_its_words(replies: Any) -> None:
    message = answer(await replies(response(REFUSAL)))
    assert message.stop_reason == "refusal"
    assert message.text == "I can't help with that."


async def test_refusal_goes_back_as_one(loopback_responses: LoopbackResponses) -> None:
    message = answer(await whole(loopback_responses, response(REFUSAL)))
    loopback_responses.say("ok")
    await call(model(loopback_responses), request(message, HI))
    assert loopback_responses.requests[-1].json["input"][0] == REFUSAL


async def test_refusal_streams_like_words(loopback_responses: LoopbackResponses) -> None:
    events = await streamed(
        loopback_responses,
        added(0, REFUSAL | {"content": []}),
        delta("refusal", 0, "I can't "),
        delta("refusal", 0, "help with that."),
        {"type": "response.refusal.done", "output_index": 0, "refusal": "I can't help with that."},
        ended(response(REFUSAL)),
    )
    assert [event.delta for event in events if isinstance(event, TextDelta)] == ["I can't ", "help with that."]
    assert answer(events).stop_reason == "refusal"


@pytest.mark.parametrize(
    ("details", "stop"),
    [({"reason": "max_output_tokens"}, "length"), ({"reason": "content_filter"}, "refusal"), (None, "length")],
)
async def test_incomplete_answer_says_why(replies: Any, details: Json | None, stop: str) -> None:
    message = answer(await replies(response(text("So far"), status="incomplete", incomplete_details=details)))
    assert (message.text, message.stop_reason) == ("So far", stop)


async def test_thoughts_that_were_cut_off_are_not_sent_back(replies: Any) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}]}
    message = answer(await replies(response(thought, status="incomplete", store=False)))
    assert message.content == [Thinking("Hm")]


# Failures


@pytest.mark.parametrize(
    ("event", "kind", "status", "words"),
    [
        (
            {"type": "error", "code": "server_error", "message": "The server had an error", "param": None},
            "timeout",
            500,
            "The server had an error",
        ),
        (
            {"type": "error", "error": {"type": "requests", "code": "rate_limit_exceeded", "message": "Slow down"}},
            "rate_limit",
            429,
            "Slow down",
        ),
        (
            ended(response(status="failed", error={"code": "server_error", "message": "It broke"})),
            "timeout",
            500,
            "It broke",
        ),
        (
            ended(response(status="failed", error={"code": "context_length_exceeded", "message": "Too much"})),
            "context_overflow",
            0,
            "Too much",
        ),
        (
            ended(response(status="failed", error={"code": "insufficient_quota", "message": "No more"})),
            "quota",
            429,
            "No more",
        ),
        (ended(response(status="failed")), "timeout", 0, "broke its answer off"),
        (ended(response(status="cancelled")), "timeout", 0, "broke its answer off"),
        ({"detail": "Upstream went away"}, "timeout", 0, "Upstream went away"),
    ],
)
async def test_failure_amid_a_stream_is_classified_like_a_status(
    loopback_responses: LoopbackResponses, event: Json, kind: ErrorKind, status: int, words: str
) -> None:
    begun = [added(0, text()), delta("output_text", 0, "Well")]
    error = failure(await streamed(loopback_responses, *begun, event))
    assert (error.kind, error.status) == (kind, status)
    assert words in error.message


async def test_failed_response_in_one_piece_is_a_failure(loopback_responses: LoopbackResponses) -> None:
    broken = response(status="failed", error={"code": "rate_limit_exceeded", "message": "Slow down"})
    assert failure(await whole(loopback_responses, broken)).kind == "rate_limit"


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_server_that_is_down_is_tried_again(loopback_responses: LoopbackResponses, status: int) -> None:
    loopback_responses.fail(status, "The server had an error while processing your request.")
    assert failure(await call(model(loopback_responses))).kind == "timeout"


async def test_stream_without_its_last_event_is_a_failure(loopback_responses: LoopbackResponses) -> None:
    item = text("All of it")
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    events = [added(0, text()), delta("output_text", 0, "All of it"), done]
    error = failure(await streamed(loopback_responses, *events))
    assert (error.kind, error.message) == ("timeout", "openai:gpt-5: the stream ended before the answer did")


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"output": "Hello"}, []])
async def test_what_is_no_response_is_a_failure(loopback_responses: LoopbackResponses, body: Any) -> None:
    assert "not a response in OpenAI's format" in failure(await whole(loopback_responses, body)).message


# What a stream may leave out, or have too much


async def test_events_that_say_nothing_are_passed_over(loopback_responses: LoopbackResponses) -> None:
    said = text("Hello")
    events = await streamed(
        loopback_responses,
        {"type": "response.queued", "response": response(status="queued")},
        {"type": "response.in_progress", "response": response(status="in_progress")},
        {"type": "keepalive", "sequence_number": 2},
        added(0, text()),
        delta("output_text", 0, "Hello"),
        {"type": "response.output_text.done", "output_index": 0, "text": "Hello"},
        {"type": "response.something_new.delta", "output_index": 7, "delta": {"any": 1}},
        ended(response(said)),
    )
    assert [type(event) for event in events[:-1]] == [TextDelta, TextEnd]
    assert answer(events).text == "Hello"


async def test_answer_that_does_not_stream_is_shown_at_its_end(loopback_responses: LoopbackResponses) -> None:
    events = await streamed(loopback_responses, ended(response(text("Hello"), CALL)))
    assert events[:-1] == [
        TextDelta("Hello"),
        TextEnd("Hello"),
        ToolCallEnd(ToolCall("call_1", "read", {"path": "a"})),
    ]


async def test_items_that_nobody_announced_and_nobody_repeats_are_put_together(
    loopback_responses: LoopbackResponses,
) -> None:
    events = await streamed(
        loopback_responses,
        delta("reasoning_text", 0, "Hm, "),
        delta("reasoning_text", 0, "yes."),
        delta("output_text", 1, "I look."),
        added(2, CALL | {"arguments": ""}),
        delta("function_call_arguments", 2, '{"path":'),
        delta("function_call_arguments", 2, '"a"}'),
        {"type": "response.completed", "response": {"id": "resp_1"}},
    )
    message = answer(events)
    assert [part for part in message.content if not isinstance(part, Opaque)] == [
        Thinking("Hm, yes."),
        Text("I look."),
        ToolCall("call_1", "read", {"path": "a"}),
    ]
    assert "".join(event.delta for event in events if isinstance(event, ThinkingDelta)) == "Hm, yes."
    assert [event.delta for event in events if isinstance(event, ToolCallDelta)] == ['{"path":', '"a"}']
    assert message.stop_reason == "tool_calls"


async def test_calls_that_come_at_the_same_time_are_kept_apart(loopback_responses: LoopbackResponses) -> None:
    other = CALL | {"call_id": "call_2", "arguments": '{"path":"b"}'}
    events = await streamed(
        loopback_responses,
        added(0, CALL | {"arguments": ""}),
        added(1, other | {"arguments": ""}),
        delta("function_call_arguments", 1, '{"path":"b"}'),
        delta("function_call_arguments", 0, '{"path":"a"}'),
        ended(response(CALL, other)),
    )
    assert [each.args for each in answer(events).tool_calls] == [{"path": "a"}, {"path": "b"}]
    assert [event.id for event in events if isinstance(event, ToolCallDelta)] == ["call_2", "call_1"]


async def test_several_summaries_are_thoughts_of_their_own(loopback_responses: LoopbackResponses) -> None:
    summaries = [{"type": "summary_text", "text": each} for each in ("First.", "Then.")]
    item = {"type": "reasoning", "id": "rs_1", "summary": summaries, "encrypted_content": "gAAA"}
    events = await streamed(
        loopback_responses,
        added(0, item | {"summary": []}),
        part_added(0),
        delta("reasoning_summary_text", 0, "First."),
        part_added(1),
        delta("reasoning_summary_text", 0, "Then."),
        ended(response(item)),
    )
    assert "".join(event.delta for event in events if isinstance(event, ThinkingDelta)) == "First.\n\nThen."
    assert answer(events).content == [Thinking("First."), Thinking("Then."), Opaque("openai", item)]
    assert [event.text for event in events if isinstance(event, ThinkingEnd)] == ["First.", "Then."]


# What the parts hold


async def test_message_of_several_texts_with_notes_goes_back_as_one(loopback_responses: LoopbackResponses) -> None:
    note = {"type": "url_citation", "url": "https://example.com", "title": "Example", "start_index": 0, "end_index": 3}
    item = text("One. ", "Two.", phase="final_answer")
    item["content"][1]["annotations"] = [note]
    message = answer(await whole(loopback_responses, response(item)))
    assert [part for part in message.content if isinstance(part, Text)] == [Text("One. "), Text("Two.")]
    loopback_responses.say("ok")
    await call(model(loopback_responses), request(message, HI))
    assert loopback_responses.requests[-1].json["input"][0] == item


async def test_empty_text_before_a_refusal_is_left_out(replies: Any, loopback_responses: LoopbackResponses) -> None:
    empty = {"type": "output_text", "text": "", "annotations": []}
    message = answer(await replies(response(REFUSAL | {"content": [empty, REFUSED]})))
    loopback_responses.say("ok")
    await call(model(loopback_responses), request(message, HI))
    assert loopback_responses.requests[-1].json["input"][0] == REFUSAL


async def test_call_without_an_id_gets_one(replies: Any) -> None:
    message = answer(await replies(response({"type": "function_call", "name": "read", "arguments": ""})))
    [called] = message.tool_calls
    assert called.id.startswith("call_")
    assert called.args == {}


async def test_tokens_of_the_cache_are_counted_apart(replies: Any) -> None:
    details = {"cached_tokens": 60, "cache_write_tokens": 30}
    usage = {"input_tokens": 100, "output_tokens": 20, "input_tokens_details": details, "cost": 0.25}
    message = answer(await replies(response(text("Hi"), usage=usage)))
    assert message.usage == Usage(10, 20, 60, 30, 0.25)


async def test_answer_is_known_by_its_model(replies: Any) -> None:
    assert answer(await replies(response(text("Hi", id="")))) == AssistantMessage([Text("Hi")], "openai:gpt-5")
