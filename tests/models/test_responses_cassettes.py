"""What real servers of the Responses API sent is read as OpenAI's own SDK reads it, and goes back as it came."""

import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.models.calls import answer, call, failure, request
from tests.models.recordings import Recording, recordings

from denizen.errors import ErrorKind
from denizen.events import Failed, Finished, StreamEvent, TextDelta, TextEnd, ThinkingDelta, ThinkingEnd, ToolCallEnd
from denizen.messages import AssistantMessage, Opaque, Text, Thinking, ToolCall, ToolResult, UserMessage
from denizen.testing import LoopbackResponses, Step, split

ALL = recordings("cassettes_responses")
QUEUED = [each for each in ALL if each.golden and each.golden["status"] == "queued"]
ANSWERS = [each for each in ALL if each.golden and each not in QUEUED]
STREAMS = [each for each in ANSWERS if "event-stream" in each.response["headers"]["content-type"]]
LONGEST = 2000  # characters of a string that the golden messages show
DELTAS_DIFFER = "vercel-ai/packages_openai_src_responses___fixtures___openai-phase.1.chunks.txt.json"

Json = dict[str, Any]


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackResponses]:
    with LoopbackResponses() as server:
        yield server


async def replay(recording: Recording, server: LoopbackResponses, *steps: bytes | Step) -> list[StreamEvent]:
    """The events that a client makes of these bytes."""
    content_type = recording.response["headers"].get("content-type", "application/json")
    server.send(*steps, content_type=content_type)
    return await call(recording.model_at(server.base_url), request(stream="event-stream" in content_type))


def test_nothing_recorded_is_left_out() -> None:
    assert len(ALL) == 215
    assert len(STREAMS) == 92
    assert len(ANSWERS) + len(QUEUED) + len(BROKEN) + len(REFUSED) == len(ALL)


@pytest.mark.parametrize("recording", ANSWERS, ids=str)
async def test_recorded_answer_gives_the_golden_message(recording: Recording, server: LoopbackResponses) -> None:
    expected = golden_of(recording)
    message = answer(await replay(recording, server, recording.body))
    assert told(message) == expected
    assert told(answer(await replay(recording, server, *split(recording.body, 997, 1, 61, 3)))) == expected


@pytest.mark.parametrize("recording", STREAMS, ids=str)
async def test_what_streams_adds_up_to_the_message(recording: Recording, server: LoopbackResponses) -> None:
    events = await replay(recording, server, recording.body)
    message = answer(events)
    if recording.file != DELTAS_DIFFER:
        assert "".join(event.delta for event in events if isinstance(event, TextDelta)) == message.text
    thoughts = [part.text for part in message.content if isinstance(part, Thinking)]
    assert "".join(event.delta for event in events if isinstance(event, ThinkingDelta)) == "".join(thoughts)
    assert [event.text for event in events if isinstance(event, ThinkingEnd)] == thoughts
    texts = [part.text for part in message.content if isinstance(part, Text)]
    assert [event.text for event in events if isinstance(event, TextEnd)] == texts
    assert [event.call for event in events if isinstance(event, ToolCallEnd)] == message.tool_calls


@pytest.mark.parametrize("recording", ANSWERS, ids=str)
async def test_answer_goes_back_as_it_came(recording: Recording, server: LoopbackResponses) -> None:
    message = answer(await replay(recording, server, recording.body))
    kept = msgspec.json.decode(msgspec.json.encode(message), type=AssistantMessage)  # as a transcript holds it
    server.say("Go on")
    answer(await call(recording.model_at(server.base_url), request(kept, UserMessage([Text("And now?")]))))
    sent = server.requests[-1].json["input"]
    came = [*output_of(recording)]
    while came and came[-1]["type"] == "reasoning":  # thoughts that led to nothing would be refused
        came.pop()
    assert [plain(item) for item in sent[:-1]] == [plain(item) for item in came]


def output_of(recording: Recording) -> Sequence[Json]:
    """The items as the last event has them, or the whole answer.

    Left out are thoughts of which there is only an id, where the provider keeps nothing: it would refuse them.
    """
    body = json.loads(recording.body) if recording not in STREAMS else None
    if body is None:
        lines = [
            each[5:] for each in recording.body.splitlines() if each.startswith(b"data:") and b"[DONE]" not in each
        ]
        body = json.loads(lines[-1])["response"]
    held = {"encrypted_content", "content"}
    return [
        item
        for item in body["output"]
        if item["type"] != "reasoning" or body.get("store") is not False or any(map(item.get, held))
    ]


def plain(item: Json) -> Json:
    """An item without what says nothing, and with its arguments parsed."""
    shown = slim(item)
    if item["type"] == "function_call":
        shown["arguments"] = json.loads(item["arguments"] or "{}")
    if item["type"] in {"function_call", "message"}:
        shown["status"] = item.get("status", "completed")
    return shown


def slim(data: Any) -> Any:
    match data:
        case dict():
            return {name: slim(value) for name, value in data.items() if value not in (None, [], {})}
        case list():
            return [slim(each) for each in data]
    return data


# Conversations that were recorded call by call


def turns_of(recording: Recording) -> list[list[Json]]:
    """What a recorded request repeats: by turns, what was said to the model and what it had answered."""
    body = recording.request
    items = body["input"] if isinstance(body, dict) and isinstance(body.get("input"), list) else []
    said = [item for item in items if item.get("role") not in {"system", "developer"}]
    return [list(turn) for _, turn in itertools.groupby(said, _is_answer)]


def _is_answer(item: Json) -> bool:
    return item.get("role") != "user" and item.get("type") != "function_call_output"


def _words(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def earlier(recording: Recording) -> list[Recording]:
    """The answers that it repeats, where they were recorded, too."""
    return [each for each in ANSWERS if each.file == recording.file and each.n < recording.n]


def kept_all(recording: Recording) -> bool:
    """Whether the recorded client repeated every item but thoughts, left the calls their ids, and sent words alone."""
    items = [item for turn in turns_of(recording) for item in turn]
    answered = [item for item in items if _is_answer(item) and item.get("type") != "reasoning"]
    golden = [item for each in earlier(recording) if each.golden for item in each.golden["items"]]
    sent = {item["call_id"] for item in answered if item.get("type") == "function_call"}
    return (
        len(answered) == len([item for item in golden if item["type"] != "reasoning"])
        and sent <= {item.get("call_id") for item in golden}
        and all(_words(item["content"]) for item in items if item.get("role") == "user")
    )


REPEATING = [
    each
    for each in ALL
    if len(turns_of(each)) > 1 and len(turns_of(each)) == 2 * len(earlier(each)) + 1 and kept_all(each)
]


@pytest.mark.parametrize("recording", REPEATING, ids=str)
async def test_conversation_is_repeated_like_the_recorded_one(recording: Recording, server: LoopbackResponses) -> None:
    turns, messages = turns_of(recording), []
    answers = [answer(await replay(each, server, each.body)) for each in earlier(recording)]
    for said, answered in itertools.zip_longest(turns[::2], answers):
        messages += [_message_of(item) for item in said]
        messages += [answered] if answered else []
    server.say("ok")
    await call(recording.model_at(server.base_url), request(*messages))
    sent = [_essence(item) for item in server.requests[-1].json["input"]]
    recorded = [_essence(item) for turn in turns for item in turn]
    if not any(kind == "reasoning" for kind, *_ in recorded):  # not every client keeps thoughts
        sent = [each for each in sent if each[0] != "reasoning"]
    assert sent == recorded


def test_enough_conversations_are_compared() -> None:
    assert len(REPEATING) >= 15


def _message_of(item: Json) -> UserMessage | ToolResult:
    if item.get("type") == "function_call_output":
        return ToolResult(item["call_id"], "tool", [Text(item["output"])])
    return UserMessage([Text(_words(item["content"]))])


def _essence(item: Json) -> tuple[object, ...]:
    """What an item says, whatever its form."""
    match item:
        case {"role": role, "content": content}:
            return role, _words(content)
        case {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}:
            return "call", id, name, json.loads(arguments or "{}")
        case {"type": "function_call_output", "call_id": id, "output": output}:
            return "result", id, output
    return item["type"], item.get("encrypted_content")


# A message as plain data, to be compared


def told(message: AssistantMessage) -> Json:
    """What a message says, in the terms of the golden ones."""
    usage = message.usage
    return {
        "parts": [each for part in message.content if (each := _part(part))],
        "phases": [part.data["phase"] for part in message.content if isinstance(part, Opaque) and "phase" in part.data],
        "stop": message.stop_reason,
        "sent": None if usage.input is None else usage.input + (usage.cache_read or 0) + (usage.cache_write or 0),
        "answered": usage.output,
        "cached": (usage.cache_read, usage.cache_write),
    }


def _part(part: object) -> object:
    match part:
        case Text(text):
            return text
        case Thinking(text):
            return ("thinking", text)
        case ToolCall(id, name, args):
            return (id, name, args)
        case Opaque(data={"type": kind} as item) if kind not in {"reasoning", "custom_tool_call", "message"}:
            return _shown(item)
    return None


def golden_of(recording: Recording) -> Json:
    """The golden message in the same terms."""
    assert recording.golden
    items, usage = recording.golden["items"], recording.golden["usage"]
    calls = any(item["type"] in {"call", "custom_call"} for item in items)
    stop = "length" if recording.golden["status"] == "incomplete" else "tool_calls" if calls else "end"
    return {
        "parts": [part for item in items for part in _golden_parts(item) if part],
        "phases": [item["phase"] for item in items if "phase" in item],
        "stop": stop,
        "sent": usage["input"],
        "answered": usage["output"],
        "cached": (usage["cached"], usage["cache_write"]),
    }


def _golden_parts(item: Mapping[str, Any]) -> list[object]:
    match item:
        case {"type": "text"}:
            return [item["text"]]
        case {"type": "reasoning"}:
            return [("thinking", text) for text in [*item.get("summary", ()), *item.get("content", ())]]
        case {"type": "call"}:
            return [(item["call_id"], item["name"], json.loads(item["arguments"] or "{}"))]
        case {"type": "custom_call"}:
            return [(item["call_id"], item["name"], {"input": item["input"]})]
    return [item["item"]]


def _shown(data: Any) -> Any:
    """As the golden messages show it: without nulls, long strings by their hash."""
    match data:
        case dict():
            return {name: _shown(value) for name, value in data.items() if value is not None}
        case list():
            return [_shown(each) for each in data]
        case str() if len(data) > LONGEST:
            return {"sha256": hashlib.sha256(data.encode()).hexdigest(), "len": len(data)}
    return data


# Streams that are cut or damaged

SHORT = [each for each in STREAMS if len(each.body) < 12_000]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(recording=st.sampled_from(SHORT), sizes=st.lists(st.integers(1, 300), min_size=1, max_size=6))
async def test_cut_anywhere_a_stream_gives_the_same_message(
    recording: Recording, sizes: list[int], server: LoopbackResponses
) -> None:
    assert told(answer(await replay(recording, server, *split(recording.body, *sizes)))) == golden_of(recording)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(recording=st.sampled_from(STREAMS), share=st.floats(0, 1, exclude_max=True), broken=st.booleans())
async def test_stream_that_ends_early_is_a_failure_and_never_a_shorter_answer(
    recording: Recording, share: float, server: LoopbackResponses, *, broken: bool
) -> None:
    kept = recording.body[: int(len(recording.body) * share)]
    events = await replay(recording, server, kept, *([Step.HANG_UP] if broken else []))
    if isinstance(events[-1], Finished):  # only the end of the line was cut off, or its mark
        assert told(events[-1].message) == golden_of(recording)
    else:
        assert failure(events).kind == "timeout"
    assert not any(isinstance(event, Finished | Failed) for event in events[:-1])


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    recording=st.sampled_from(STREAMS),
    share=st.floats(0, 1, exclude_max=True),
    junk=st.binary(min_size=1, max_size=6) | st.sampled_from([b"null", b"-1", b"[]", b"{}", b'"', b"\n\n"]),
    gone=st.integers(0, 40),
)
async def test_damaged_stream_is_an_answer_or_a_failure(
    recording: Recording, share: float, junk: bytes, gone: int, server: LoopbackResponses
) -> None:
    place = int(len(recording.body) * share)
    events = await replay(recording, server, recording.body[:place] + junk + recording.body[place + gone :])
    assert isinstance(events[-1], Finished) or failure(events).kind in {"timeout", "unknown"}


# What isn't an answer

REFUSED = [each for each in ALL if each.status != 200]
BROKEN = [each for each in ALL if each.status == 200 and each.golden is None]
FAILURES: Sequence[tuple[str, ErrorKind, str]] = (
    ("dd-trace-py/", "auth", "Incorrect API key provided"),
    ("otel-contrib/", "unknown", "The requested model 'this-model-does-not-exist' does not exist"),
    ("pydantic-ai/", "unknown", "The requested model 'gpt-5.2-proo' does not exist"),
    ("ruby_llm/spec_fixtures_vcr_cassettes_chat_error", "auth", "Incorrect API key provided"),
    ("ruby_llm/spec_fixtures_vcr_cassettes_chat_real", "context_overflow", "exceeds the context window"),
    ("vercel-ai/", "unknown", "Unsupported parameter: 'temperature'"),
)


@pytest.mark.parametrize("recording", REFUSED, ids=str)
async def test_recorded_refusal_is_understood(recording: Recording, server: LoopbackResponses) -> None:
    kind, words = next(row[1:] for row in FAILURES if recording.file.startswith(row[0]))
    server.fail(recording.status, recording.body)
    error = failure(await call(recording.model_at(server.base_url), request()))
    assert (error.kind, error.status, error.provider) == (kind, recording.status, recording.provider.name)
    assert words in error.message


@pytest.mark.parametrize("recording", BROKEN, ids=str)
async def test_recorded_failure_inside_a_stream_is_like_one_with_its_status(
    recording: Recording, server: LoopbackResponses
) -> None:
    error = failure(await replay(recording, server, recording.body))
    assert (error.kind, error.status) == ("context_overflow", 429)
    assert "Request too large for gpt-4o" in error.message


@pytest.mark.parametrize("recording", QUEUED, ids=str)
async def test_answer_that_is_yet_to_come_is_a_failure(recording: Recording, server: LoopbackResponses) -> None:
    error = failure(await replay(recording, server, recording.body))
    assert error.kind == "unknown"
    assert "in the background" in error.message
