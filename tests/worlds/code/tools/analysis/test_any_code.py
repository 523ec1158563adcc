"""Whatever a source file holds, it is looked into without harm."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denizen.structure import language_of
from denizen.worlds.code.tools.analysis.imports import FOLLOWED, Modules
from denizen.worlds.code.tools.analysis.security import languages, risks

RISKY = sorted((Path(__file__).parents[4] / "data" / "analysis" / "risky").iterdir())
PIECES = st.sampled_from([b"", b"(((", b'"', b"'''", b"${", b"\xff\0", b"password = ", b"SELECT a FROM b ", b"`"])


@pytest.mark.parametrize("file", RISKY, ids=lambda file: file.name)
@given(st.data())
@settings(max_examples=20)
def test_any_piece_of_a_file_may_be_broken(file: Path, data: st.DataObject) -> None:
    source = file.read_bytes()
    start = data.draw(st.integers(0, len(source)))
    end = data.draw(st.integers(start, min(start + 60, len(source))))
    broken = source[:start] + data.draw(PIECES) + source[end:]
    lines = broken.count(b"\n") + 1
    assert all(0 < risk.line <= lines for risk in risks(broken, language_of(file.name)))


def test_every_language_with_a_grammar_has_rules() -> None:
    assert {language_of(file.name) for file in RISKY} == set(languages())


@pytest.mark.parametrize("language", sorted(FOLLOWED))
@given(st.text(st.sampled_from("a./:{}\\@~*-'\" "), max_size=20))
@settings(max_examples=50)
def test_any_import_leads_to_a_file_or_nowhere(language: str, name: str) -> None:
    paths = ["a/a.x", "a/index.x", "a.x", "b/__init__.x"]
    modules = Modules((path, language) for path in paths)
    assert modules.find(name, "a/a.x", language) in {"", *paths, "a", "b", "."}
