"""What Gemini sent is read as Google's own SDK reads it, over real HTTP, however the bytes are cut."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.models.calls import answer, call, failure
from tests.models.gemini_recordings import GeminiRecording, gemini_recordings, golden_of, told

from denizen.errors import ErrorKind
from denizen.events import Failed, Finished, StreamEvent, TextDelta, ThinkingDelta
from denizen.messages import Thinking
from denizen.ports import ModelRequest
from denizen.testing import LoopbackGemini, Step, split

ALL = gemini_recordings()
BROKEN_OFF = {  # the SDK makes a message of these; to us they are failures, worth another try
    "OTHER: Model failed to generate content due to internal error.": {178},
    "its answer is empty": {194, 201, 202},
    "the stream ended before the answer did": {183, 185, 191},  # no event says why it ended; all are fixtures
}
PIECEMEAL = {  # calls whose arguments come one by one, which the SDK doesn't put together
    171: [{"location": "Boston"}, {"location": "San Francisco"}],
    172: [
        {
            "operations": [
                {"action": "add", "description": "Fresh red apple", "itemid": "apple_001", "price": 0.5},
                {"action": "add", "description": "Ripe yellow banana", "itemid": "banana_001", "price": 0.3},
            ]
        }
    ],
}
FAILED = [each for each in ALL if each.index in set().union(*BROKEN_OFF.values())]
ANSWERS = [each for each in ALL if each.golden and each not in FAILED and each.index not in PIECEMEAL]
STREAMS = [each for each in ANSWERS if each.stream]


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackGemini]:
    with LoopbackGemini() as server:
        yield server


async def replay(server: LoopbackGemini, recording: GeminiRecording, *steps: bytes | Step) -> list[StreamEvent]:
    """The events that the client makes of these bytes."""
    server.send(*steps, content_type=recording.content_type)
    return await call(recording.model_at(server.base_url), ModelRequest([], stream=recording.stream))


def test_nothing_recorded_is_left_out() -> None:
    assert (len(ALL), len(ANSWERS), len(FAILED), len(PIECEMEAL)) == (217, 194, 7, 2)
    assert len([each for each in ALL if not each.golden]) == len(REFUSED) + 1  # the last: a stream that fails


@pytest.mark.parametrize("recording", ANSWERS, ids=str)
async def test_recorded_answer_gives_the_golden_message(recording: GeminiRecording, server: LoopbackGemini) -> None:
    assert recording.golden
    expected = golden_of(recording.golden)
    events = await replay(server, recording, recording.body)
    message = answer(events)
    assert told(message) == expected
    if recording.stream:
        assert "".join(event.delta for event in events if isinstance(event, TextDelta)) == message.text
        thoughts = "".join(part.text for part in message.content if isinstance(part, Thinking))
        assert "".join(event.delta for event in events if isinstance(event, ThinkingDelta)) == thoughts
        assert told(answer(await replay(server, recording, *split(recording.body, 997, 1, 61, 3)))) == expected
    else:
        assert len(events) == 1


@pytest.mark.parametrize("recording", [each for each in ALL if each.index in PIECEMEAL], ids=str)
async def test_arguments_that_come_one_by_one_are_put_together(
    recording: GeminiRecording, server: LoopbackGemini
) -> None:
    message = answer(await replay(server, recording, recording.body))
    assert [call.args for call in message.tool_calls] == PIECEMEAL[recording.index]
    assert message.stop_reason == "tool_calls"


@pytest.mark.parametrize("recording", FAILED, ids=str)
async def test_answer_that_is_none_is_a_failure(recording: GeminiRecording, server: LoopbackGemini) -> None:
    error = failure(await replay(server, recording, recording.body))
    assert error.kind == "timeout"
    assert next(words for words, found in BROKEN_OFF.items() if recording.index in found) in error.message


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    recording=st.sampled_from([each for each in STREAMS if len(each.body) < 5000]),
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=6),
)
async def test_cut_anywhere_a_stream_gives_the_same_message(
    recording: GeminiRecording, sizes: list[int], server: LoopbackGemini
) -> None:
    assert told(answer(await replay(server, recording, *split(recording.body, *sizes)))) == golden_of(
        recording.golden or {}
    )


ENDS_ONCE = [each for each in STREAMS if each.body.count(b'"finishReason"') == 1]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(recording=st.sampled_from(ENDS_ONCE), share=st.floats(0, 1, exclude_max=True), broken=st.booleans())
async def test_stream_that_ends_early_is_a_failure_and_never_a_shorter_answer(
    recording: GeminiRecording, share: float, server: LoopbackGemini, *, broken: bool
) -> None:
    kept = recording.body[: int(len(recording.body) * share)]
    events = await replay(server, recording, kept, *([Step.HANG_UP] if broken else []))
    if isinstance(events[-1], Finished):  # only the line feeds after the last event were cut off
        assert told(events[-1].message) == golden_of(recording.golden or {})
    else:
        assert failure(events).kind == "timeout"
    assert not any(isinstance(event, Finished | Failed) for event in events[:-1])


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    recording=st.sampled_from(STREAMS),
    share=st.floats(0, 1, exclude_max=True),
    junk=st.binary(min_size=1, max_size=6) | st.sampled_from([b"null", b"-1", b"[]", b"{}", b'"', b"\r\n\r\n"]),
    gone=st.integers(0, 40),
)
async def test_damaged_stream_is_an_answer_or_a_failure(
    recording: GeminiRecording, share: float, junk: bytes, gone: int, server: LoopbackGemini
) -> None:
    place = int(len(recording.body) * share)
    events = await replay(server, recording, recording.body[:place] + junk + recording.body[place + gone :])
    assert isinstance(events[-1], Finished | Failed)
    assert isinstance(events[-1], Finished) or failure(events).kind in {"timeout", "unknown"}


def as_list(recording: GeminiRecording) -> bytes:
    """The stream as it comes without `alt=sse`."""
    events = [line[6:] for line in recording.body.splitlines() if line.startswith(b"data: ")]
    return b"[" + b"\r\n,\r\n".join(events) + b"]"


async def replay_list(server: LoopbackGemini, recording: GeminiRecording, *pieces: bytes) -> list[StreamEvent]:
    server.send(*pieces, content_type="application/json; charset=UTF-8")
    return await call(recording.model_at(server.base_url), ModelRequest([], stream=True))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    recording=st.sampled_from([each for each in ENDS_ONCE if len(each.body) < 20_000]),
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=6),
    share=st.floats(0, 1, exclude_max=True),
    junk=st.binary(max_size=4),
)
async def test_list_of_events_is_the_same_message_or_a_failure(
    recording: GeminiRecording, sizes: list[int], share: float, junk: bytes, server: LoopbackGemini
) -> None:
    body = as_list(recording)
    place = int(len(body) * share)
    whole = await replay_list(server, recording, *split(body, *sizes))
    assert told(answer(whole)) == golden_of(recording.golden or {})
    assert failure(await replay_list(server, recording, body[:place])).kind in {"timeout", "unknown"}
    damaged = await replay_list(server, recording, body[:place] + junk + body[place:])
    assert isinstance(damaged[-1], Finished | Failed)


@pytest.mark.parametrize("recording", [each for each in ENDS_ONCE if len(each.body) < 40_000], ids=str)
async def test_stream_cut_after_any_event_but_the_last_is_a_failure(
    recording: GeminiRecording, server: LoopbackGemini
) -> None:
    ends = [found.end() for found in re.finditer(rb"\r?\n\r?\n", recording.body)]
    last = recording.body.index(b'"finishReason"')
    for end in (0, *(end for end in ends if end < last)):
        assert failure(await replay(server, recording, recording.body[:end])).kind == "timeout"


async def test_error_without_a_frame_inside_a_stream(server: LoopbackGemini) -> None:
    [recording] = [each for each in ALL if each.status == 200 and not each.golden]
    events = await replay(server, recording, recording.body)
    error = failure(events)
    assert (error.kind, error.status) == ("timeout", 499)
    assert error.message == "google:model: The operation was cancelled (HTTP 499)"
    assert "".join(event.delta for event in events if isinstance(event, TextDelta)) == "First Second "


REFUSED: dict[int, tuple[ErrorKind, str]] = {
    78: ("unknown", "it has a temperature value of 1000"),
    79: ("unknown", "gemini-does-not-exist` not found"),
    134: ("auth", "API key not valid"),
    158: ("rate_limit", "You exceeded your current quota"),
    168: ("rate_limit", "You exceeded your current quota"),
    182: ("auth", "API key not valid"),
    193: ("unknown", "cache content metadata 8754364356910645200"),
    197: ("auth", "Firebase ML API has not been used in project 1234567890"),
    198: ("auth", "Vertex AI in Firebase API has not been used"),
    199: ("unknown", "Request contains an invalid argument"),
    200: ("unknown", "Invalid CachedContent name: 1234567890"),
    203: ("unknown", "models/test-model-name is not found"),
    205: ("unknown", "User location is not supported"),
}


@pytest.mark.parametrize("recording", [each for each in ALL if each.status != 200], ids=str)
async def test_recorded_refusal_is_understood(recording: GeminiRecording, server: LoopbackGemini) -> None:
    server.fail(recording.status, recording.body)
    kind, words = REFUSED[recording.index]
    error = failure(await call(recording.model_at(server.base_url), ModelRequest([], stream=True)))
    assert (error.kind, error.status, error.provider) == (kind, recording.status, "google")
    assert words in error.message
    assert error.retry_after == {158: 48.939935699, 168: 34.4}.get(recording.index)
