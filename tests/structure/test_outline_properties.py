"""Whatever a file holds, its outline hangs together."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denizen.structure import Unparsable, language_of, outline

DATA = Path(__file__).parents[1] / "data/languages"
FILES = sorted(path.name for path in DATA.iterdir() if path.is_file() and path.name != "README.md")
PIECES = [
    b"(",
    b")",
    b"{",
    b"}",
    b"<",
    b'"',
    b"'",
    b"\n",
    b"\r",
    b"\\",
    b"@",
    b"#",
    b"/*",
    b"*/",
    b"\xff",
    b"\0",
    b"end",
    b"`",
]

edits = st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 40), st.sampled_from(PIECES)), min_size=1, max_size=10)


@pytest.mark.parametrize("name", FILES)
@given(edits=edits)
@settings(max_examples=25)
def test_outlines_of_broken_files_hang_together(name: str, edits: list[tuple[int, int, bytes]]) -> None:
    source = (DATA / name).read_bytes()
    for at, cut, piece in edits:
        at %= len(source) + 1
        source = source[:at] + piece + source[at + cut :]
    try:
        found = outline(source, language_of(name))
    except Unparsable:
        return
    lines = source.count(b"\n") + 1
    for symbol in found.symbols:
        assert symbol.name
        assert 0 <= symbol.start < symbol.end <= len(source)
        assert 1 <= symbol.first <= symbol.line <= symbol.last <= lines
        assert symbol.path.endswith(symbol.name)
    for reference in found.references:
        assert -1 <= reference.symbol < len(found.symbols)
        assert 1 <= reference.line <= lines
    assert [symbol.start for symbol in found.symbols] == sorted(symbol.start for symbol in found.symbols)
