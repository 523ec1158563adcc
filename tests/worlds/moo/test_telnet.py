"""Telnet commands are found however their bytes are split, and options are agreed to without a loop."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.worlds.moo.captures import SCENES, sessions

from denizen.worlds.moo.negotiation import Negotiator, gmcp_said, server_status
from denizen.worlds.moo.telnet import (
    MAX_SUBNEGOTIATION_BYTES,
    Event,
    Option,
    OptionRequest,
    PromptMark,
    Subnegotiation,
    TelnetParser,
    TelnetText,
    Verb,
    request,
    subnegotiation,
)

OFFERS = b"\xff\xfb\xc9\xff\xfbF\xff\xfbZ\xff\xfb\x19\xff\xfb*\xff\xfc\x03\xff\xfd\x18\xff\xfd\x1f"


def parsed(chunks: Iterable[bytes]) -> list[Event]:
    """The events, texts that follow each other joined."""
    parser, events = TelnetParser(), list[Event]()
    for event in (event for chunk in chunks for event in parser.feed(chunk)):
        last = events[-1] if events else None
        if isinstance(event, TelnetText) and isinstance(last, TelnetText):
            events[-1] = TelnetText(last.data + event.data)
        else:
            events.append(event)
    return events


def bytewise(data: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in data]


@pytest.mark.parametrize("scene", SCENES)
def test_a_capture_gives_the_same_events_wherever_it_is_split(scene: str) -> None:
    for chunks in sessions(scene).values():
        data = b"".join(chunks)
        assert parsed([data]) == parsed(chunks) == parsed(bytewise(data))
        for chunk in chunks:
            whole = parsed([chunk])
            for at in range(len(chunk)):
                assert parsed([chunk[:at], chunk[at:]]) == whole


_pieces = st.sampled_from([b"\xff", b"\xfa", b"\xf0", b"\xf9", b"\xfb\xc9", b"\xc9x {}", b"text", b"\r\n", b"\xff\xff"])


@given(st.lists(_pieces | st.binary(max_size=5), max_size=40), st.lists(st.integers(0, 200), max_size=8))
def test_any_bytes_give_the_same_events_and_answers_wherever_they_are_split(
    pieces: Sequence[bytes], cuts: Sequence[int]
) -> None:
    data = b"".join(pieces)
    ends = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    events = parsed(data[start:end] for start, end in pairwise(ends))
    assert events == parsed([data]) == parsed(bytewise(data))
    negotiator = Negotiator()
    for event in events:
        negotiator.answer(event)
        if isinstance(event, Subnegotiation):
            gmcp_said(event)
            server_status(event)


def test_a_doubled_255_is_text_and_unknown_commands_are_not() -> None:
    assert parsed([b"a\xff\xffb\xff\xf1c\xff\x01d\xff\xf0e"]) == [TelnetText(b"a\xffbcde")]


def test_go_ahead_and_end_of_record_are_prompt_marks() -> None:
    assert parsed([b">\xff\xf9>\xff\xef"]) == [TelnetText(b">"), PromptMark(), TelnetText(b">"), PromptMark()]


def test_a_command_inside_an_unfinished_subnegotiation_counts_and_the_rest_is_dropped() -> None:
    assert parsed([b"\xff\xfa\xc9Core\xff\xf9text"]) == [PromptMark(), TelnetText(b"text")]


@pytest.mark.parametrize("extra", [0, 1, 2])
def test_a_subnegotiation_beyond_the_limit_is_dropped_and_what_follows_is_read(extra: int) -> None:
    data = b"\xff\xfa\xc9" + b"x" * (MAX_SUBNEGOTIATION_BYTES - 3 + extra) + b"\xff\xf0after"
    events = parsed([data])
    assert events == parsed([data[:-9], *bytewise(data[-9:])])
    assert events[-1] == TelnetText(b"after")
    assert len(events) == (2 if extra < 1 else 1)


def answers(*events: Event) -> bytes:
    negotiator = Negotiator()
    return b"".join(negotiator.answer(event) for event in events)


def test_the_servers_offers_are_answered_as_agreed() -> None:
    said = answers(*parsed([OFFERS]))
    assert parsed([said])[:2] == [
        OptionRequest(Verb.DO, Option.GMCP),
        Subnegotiation(Option.GMCP, b'Core.Hello {"client":"denizen","version":"0.2.0"}'),
    ]
    requests = [event for event in parsed([said]) if isinstance(event, OptionRequest)]
    assert requests == [
        OptionRequest(Verb.DO, Option.GMCP),
        OptionRequest(Verb.DO, Option.MSSP),
        OptionRequest(Verb.DONT, 90),
        OptionRequest(Verb.DO, Option.CHARSET),
        OptionRequest(Verb.WILL, Option.TTYPE),
        OptionRequest(Verb.WILL, Option.NAWS),
    ]


def test_end_of_record_is_agreed_to_after_the_first_prompt_to_keep_gmcp_going() -> None:
    negotiator = Negotiator()
    assert negotiator.answer(OptionRequest(Verb.WILL, Option.END_OF_RECORD)) == b""
    assert negotiator.answer(PromptMark()) == request(Verb.DO, Option.END_OF_RECORD)
    assert negotiator.answer(PromptMark()) == b""


@given(st.lists(st.builds(OptionRequest, st.sampled_from([251, 253]), st.integers(0, 255)), max_size=60))
def test_requests_that_are_repeated_have_no_second_answer(asked: Sequence[OptionRequest]) -> None:
    negotiator = Negotiator()
    for event in asked:
        negotiator.answer(event)
    assert b"".join(negotiator.answer(event) for event in asked) == b""


def test_suppressed_go_aheads_are_refused_in_both_directions() -> None:
    assert answers(OptionRequest(Verb.WILL, 3), OptionRequest(Verb.DO, 3)) == request(Verb.DONT, 3) + request(
        Verb.WONT, 3
    )


def test_an_option_that_was_turned_off_can_be_turned_on_again() -> None:
    on, off = OptionRequest(Verb.DO, Option.TTYPE), OptionRequest(Verb.DONT, Option.TTYPE)
    will, wont = request(Verb.WILL, Option.TTYPE), request(Verb.WONT, Option.TTYPE)
    assert answers(on, on, off, off, on) == will + wont + will


def test_the_terminal_type_goes_through_its_stages_and_then_repeats_the_terminal() -> None:
    asked = Subnegotiation(Option.TTYPE, b"\x01")
    said = parsed([answers(OptionRequest(Verb.DO, Option.TTYPE), *[asked] * 5)])[1:]
    terminal = Subnegotiation(Option.TTYPE, b"\x00XTERM-256COLOR")
    client, mtts = (Subnegotiation(Option.TTYPE, b"\x00" + text) for text in (b"denizen", b"MTTS 77"))
    assert said == [client, terminal, mtts, terminal, terminal]


@pytest.mark.parametrize(
    ("offered", "answer"),
    [(b";UTF-8;US-ASCII", b"\x02UTF-8"), (b" KOI8-R utf-8", b"\x02utf-8"), (b";KOI8-R", b"\x03"), (b"", b"\x03")],
)
def test_the_server_may_choose_utf_8_as_the_character_set(offered: bytes, answer: bytes) -> None:
    asked = Subnegotiation(Option.CHARSET, b"\x01" + offered)
    assert answers(asked) == subnegotiation(Option.CHARSET, answer)


def test_gmcp_that_is_no_json_is_passed_over() -> None:
    assert gmcp_said(Subnegotiation(Option.GMCP, b"Room.Info {bad")) is None
    assert gmcp_said(Subnegotiation(Option.GMCP, b"Room.Info " + b"[" * 100_000)) is None


def test_what_the_server_says_of_itself_is_read() -> None:
    said = [event for event in parsed([b"".join(sessions("login")["player"])]) if isinstance(event, Subnegotiation)]
    status = server_status(next(event for event in said if event.option == Option.MSSP))
    assert (status["CODEBASE"], status["VERSION"], status["SSL"]) == ("DjangoMOO", "1.20.0", "0")
