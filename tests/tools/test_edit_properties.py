"""No edit corrupts a file: around the place, every byte stays; and a refusal changes none."""

import asyncio
import tempfile
import textwrap
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st

from denizen.errors import ToolRefused
from denizen.ports import Answer, ToolContext
from denizen.testing import FakeClock
from denizen.tools.edit import edit

contents = st.lists(
    st.sampled_from(
        [b"a", b"b", b" ", b"\t", b"\n", b"\r\n", b"\r", b"\xe9", "é".encode(), "🎉".encode(), b"foo(bar)"]
    ),
    max_size=30,
).map(b"".join)
words = st.text(alphabet=st.sampled_from("ab \t\né("), min_size=1, max_size=8)
blocks = st.lists(st.tuples(st.integers(0, 3), st.from_regex(r"[a-z]{2,5}", fullmatch=True)), min_size=1, max_size=6)


def edited(before: bytes, old: str, new: str) -> bytes | None:
    """What becomes of the file; None: it was refused, and must be as it was."""

    async def nobody(question: str) -> Answer:
        raise AssertionError(question)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f"
        path.write_bytes(before)
        turn = ToolContext("session", "call-1", Path(folder), FakeClock(), lambda line: None, nobody)
        try:
            asyncio.run(edit.run({"path": "f", "old": old, "new": new}, turn))
        except ToolRefused:
            assert path.read_bytes() == before
            assert [entry.name for entry in Path(folder).iterdir()] == ["f"]
            return None
        return path.read_bytes()


@given(contents, words, words)
def test_everything_around_the_place_stays_as_it_is(before: bytes, old: str, new: str) -> None:
    after = edited(before, old, new)
    lines = 2 + old.count("\n") + new.count("\n")
    if after is not None:
        same = [a == b for a, b in zip(before.split(b"\n"), after.split(b"\n"), strict=False)]
        start = same.index(False) if False in same else len(same)
        end = len(before.split(b"\n")) - start - lines
        assert end <= 0 or before.split(b"\n")[-end:] == after.split(b"\n")[-end:]


@given(st.binary(max_size=20), st.binary(max_size=20), words)
def test_an_exact_match_replaces_just_its_bytes(head: bytes, tail: bytes, new: str) -> None:
    before = head + b"<<here>>" + tail
    assume(b"\r" not in before and b"\n" not in before and b"\0" not in before)
    assume(not before.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")) and new.isascii())
    assert edited(before, "<<here>>", new) == head + new.encode() + tail


def indented(block: list[tuple[int, str]], unit: str) -> str:
    return "".join(f"{unit * depth}{word}\n" for depth, word in block)


@given(blocks, blocks, st.sampled_from(["\t", "  ", "    "]), st.integers(1, 3))
def test_a_block_quoted_without_its_indentation_gets_it_back(
    old: list[tuple[int, str]], new: list[tuple[int, str]], unit: str, depth: int
) -> None:
    old, new = [(0, "begin"), *old], [(0, "begin"), *new]
    assume(old != new)
    before = f"top\n{textwrap.indent(indented(old, unit), unit * depth)}bottom\n"
    after = f"top\n{textwrap.indent(indented(new, unit), unit * depth)}bottom\n"
    assume(before.count(indented(old, unit)) == 0)
    assert edited(before.encode(), indented(old, unit), indented(new, unit)) == after.encode()
