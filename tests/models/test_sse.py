"""Server-sent events: whatever the framing and wherever it is cut, the data comes out."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.models.http import MAX_EVENT_BYTES, SseParser

payloads = st.dictionaries(st.text(max_size=4), st.text(max_size=12), max_size=2).map(
    lambda value: json.dumps(value, ensure_ascii=False)
)
dressed = st.sampled_from(
    [
        "data: {}\n\n",
        "data:{}\n\n",
        "event: message\ndata: {}\n\n",
        ": hi\n\ndata: {}\n\n",
        "id: 1\ndata: {}\nretry: 9\n\n",
    ]
)


def feed(stream: SseParser, data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted({min(cut, len(data)) for cut in cuts}), len(data)]
    told = [each for start, end in pairwise(places) for each in stream.feed(data[start:end])]
    return [each.strip() for each in told + stream.close()]


@given(
    events=st.lists(st.tuples(payloads, dressed, st.sampled_from(["\n", "\r\n", "\r"])), max_size=6),
    newline=st.sampled_from(["\n", "\r\n", "\r", "any"]),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_cut_anywhere_the_same_data_comes_out(
    events: list[tuple[str, str, str]], newline: str, cuts: list[int]
) -> None:
    frames = [(frame.replace("{}", payload), own if newline == "any" else newline) for payload, frame, own in events]
    data = "".join(frame.replace("\n", end) for frame, end in frames).encode()
    assert feed(SseParser(), data, cuts) == [payload.encode() for payload, _, _ in events]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_event_ends_with_its_empty_line(newline: bytes) -> None:
    stream = SseParser()
    told = stream.feed(b"data: 1\n\ndata: 2\n\ndata: 3".replace(b"\n", newline))
    assert [each.strip() for each in told] == [b"1", b"2"]


def test_event_is_passed_on_as_soon_as_it_is_complete() -> None:
    stream = SseParser()
    assert stream.feed(b'data: {"a":') == []
    assert stream.feed(b" 1}\n") == []
    assert stream.feed(b"\ndata: ") == [b' {"a": 1}']


def test_lines_of_data_are_one_event() -> None:
    assert feed(SseParser(), b'data: {"a":\ndata: 1}\n\ndata: 2\n\n', []) == [b'{"a":\n1}', b"2"]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_lines_of_data_are_one_event_wherever_they_are_cut(newline: bytes) -> None:
    data = b'data: {"a":\ndata: 1}\n\n'.replace(b"\n", newline)
    for cut in range(len(data)):
        assert feed(SseParser(), data, [cut]) == [b'{"a":\n1}'], cut


def test_byte_order_mark_is_skipped() -> None:
    assert feed(SseParser(), b"\xef\xbb\xbfdata: 1\n\n", []) == [b"1"]


@pytest.mark.parametrize(
    "data", [b": comment\n\n", b"event: ping\n\n", b"\n\n\n\n", b"data\n\n", b"data:\n\n", b"database: 1\n\n", b"id: 1"]
)
def test_events_without_data_say_nothing(data: bytes) -> None:
    assert feed(SseParser(), data, []) == []


def test_last_event_may_lack_its_end() -> None:
    assert feed(SseParser(), b"data: 1\n\ndata: 2", []) == [b"1", b"2"]


def test_bare_json_after_the_events_is_passed_on() -> None:
    assert feed(SseParser(), b'data: 1\n\n{"error": {}}', []) == [b"1", b'{"error": {}}']


def test_event_without_an_end_is_not_kept_for_ever() -> None:
    stream = SseParser()
    stream.feed(b"data: " + b"x" * MAX_EVENT_BYTES)
    with pytest.raises(ConnectionError, match="an event of more than 16 MB"):
        stream.feed(b"x")
