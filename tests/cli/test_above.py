"""What is printed above a prompt comes in whole lines, in its order."""

import io

import pytest

from denizen.cli.above import Above, Page, end_of


def test_whole_lines_are_written_and_the_rest_stands_by() -> None:
    stream, page = io.StringIO(), Page(lambda: None)
    print("one\ntw", end="", file=Above(stream, page))
    page.write()
    assert (stream.getvalue(), page.unfinished) == ("one\n", "tw")
    print("o", file=Above(stream, page))
    page.write()
    assert (stream.getvalue(), page.unfinished) == ("one\ntwo\n", "")


def test_nothing_is_written_until_there_is_room_for_it() -> None:
    stream, told = io.StringIO(), []
    page = Page(lambda: told.append("changed"))
    print("one", file=Above(stream, page))
    assert stream.getvalue() == ""
    assert told
    assert page
    page.write()
    assert not page


def test_two_streams_keep_their_order() -> None:
    written: list[str] = []

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

    page = Page(lambda: None)
    out, err = Above(Stream(), page), Above(Stream(), page)
    for stream, line in ((out, "a\n"), (err, "b\n"), (out, "c\n")):
        stream.write(line)
    page.write()
    assert written == ["a\n", "b\n", "c\n"]


def test_a_short_line_is_shown_whole() -> None:
    assert end_of("short", 2, 10) == "short"


@pytest.mark.parametrize(("line", "end"), [("0123456789" * 3 + "ab", "0123456789ab"), ("字" * 23, "字" * 8)])
def test_of_a_long_line_the_last_rows_are_shown(line: str, end: str) -> None:
    assert end_of(line, 2, 10) == end


def test_a_wide_character_that_does_not_fit_begins_the_next_row() -> None:
    assert end_of("字" * 7, 2, 5) == "字" * 3
    assert end_of("a" + "字" * 7, 2, 5) == "字" * 3


def test_of_a_very_long_line_whole_rows_are_shown() -> None:
    assert end_of("0123456789" * 10_000 + "ab", 3, 10) == "0123456789" * 2 + "ab"
