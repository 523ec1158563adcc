"""What is printed above a prompt comes in whole lines, in its order."""

import io

from denizen.cli.above import Above, Page


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
