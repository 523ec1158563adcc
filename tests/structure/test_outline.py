"""What a file defines and what it refers to."""

import os
from pathlib import Path

import pytest

from denizen.structure import LANGUAGES, Outline, Unparsable, language_of, outline
from denizen.structure.outline import MAX_BYTES, MAX_DEPTH, MAX_PROBLEMS

DATA = Path(__file__).parents[1] / "data/languages"
FILES = sorted(path.name for path in DATA.iterdir() if path.is_file() and path.name != "README.md")


def written(found: Outline) -> str:
    """The outline as the expected ones are written."""
    symbols = [
        f"{each.first}-{each.last} {'  ' * each.depth}{each.kind} {each.path} | {each.signature} | {each.doc}"
        for each in found.symbols
    ]
    references = [
        f"{each.line} {each.kind} {each.name}" + (f" in {found.symbols[each.symbol].path}" if each.symbol >= 0 else "")
        for each in found.references
    ]
    return "\n".join([*(line.rstrip(" |") for line in symbols), "", *references, ""])


def paths(source: str, language: str = "python") -> list[str]:
    return [symbol.path for symbol in outline(source.encode(), language).symbols]


@pytest.mark.parametrize("name", FILES)
def test_symbols_and_references_are_found(name: str) -> None:
    found = outline((DATA / name).read_bytes(), language_of(name))
    assert written(found) == (DATA / "expected" / f"{name}.txt").read_text()
    assert not found.problems


def test_every_language_has_its_file() -> None:
    assert {language_of(name) for name in FILES} == set(LANGUAGES)


@pytest.mark.parametrize("name", FILES)
def test_windows_line_ends_make_no_difference(name: str) -> None:
    source = (DATA / name).read_bytes()
    found = outline(source.replace(b"\n", b"\r\n"), language_of(name))
    assert written(found) == written(outline(source, language_of(name)))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("source", [b"", b"\n", b" \n\t", b"\xff\xfe\0\0", b"}{)(\n" * 50], ids=repr)
def test_what_is_no_program_has_no_symbols(source: bytes, language: str) -> None:
    assert not outline(source, language).symbols


@pytest.mark.parametrize("name", FILES)
def test_what_is_broken_keeps_the_rest(name: str) -> None:
    whole = outline((DATA / name).read_bytes(), language_of(name))
    broken = outline((DATA / name).read_bytes() + b"\n%%% ((( \n", language_of(name))
    assert broken.problems
    assert whole.symbols[0].path in {symbol.path for symbol in broken.symbols}


def test_problems_say_where() -> None:
    found = outline(b"x = 1\n\ndef f(:\n    pass\n", "python")
    assert found.problems == [(3, 7, "`)` is missing")]
    assert len(outline(b"x = = 1\n" * 1000, "python").problems) == MAX_PROBLEMS


def test_a_symbol_has_its_comments_decorators_and_keywords() -> None:
    source = b"x = 1\n\n# About f.\n# More.\n@cache\ndef f():\n    pass\n\ny = 2  # two\n"
    function, last = outline(source, "python").symbols[1:]
    assert source[function.start : function.end] == b"# About f.\n# More.\n@cache\ndef f():\n    pass"
    assert (function.first, function.line, function.last, function.doc) == (3, 6, 7, "About f.")
    assert source[last.start : last.end] == b"y = 2  # two"


def test_a_separate_comment_does_not_belong_to_a_symbol() -> None:
    source = b"# A section.\n\ndef f():\n    pass\n    # The end of f.\ndef g():\n    pass\n"
    f, g = outline(source, "python").symbols
    assert (f.first, f.doc) == (3, "")
    assert (g.first, g.doc) == (6, "")


def test_the_first_line_of_a_script_is_not_a_symbols() -> None:
    assert outline(b"#!/bin/sh\nf() { :; }\n", "bash").symbols[0].first == 2


@pytest.mark.parametrize(
    ("language", "source", "expected"),
    [
        ("python", "def f():\n    x = 1\n    def g(): pass\n", ["f", "f/g"]),
        ("python", "if x:\n    Y = 1\ntry:\n    Z = 1\nexcept E: pass\n", ["Y", "Z"]),
        ("javascript", "describe('x', () => { const local = 1; function inner() {} })", ["inner"]),
        ("javascript", "Store.prototype.add = function (x) {};\nexports.load = () => {}", ["Store/add", "load"]),
        ("javascript", "const a = 1, b = () => 2", ["a", "b"]),
        ("typescript", "const x = { run: async () => {} }", ["x", "x/run"]),
        ("go", "type (\n\tA struct{ x int }\n\tB = int\n)", ["A", "A/x", "B"]),
        ("c", "#ifndef A_H\n#define A_H\nint f(void);\nint *g(int a, char **b);\n#endif\n", ["A_H", "f", "g"]),
        ("c", "typedef struct node { struct node *next; } node_t;", ["node_t", "node_t/next"]),
        ("c", "typedef int (*handler)(int);\nint f(void) { int local; }", ["handler", "f"]),
        ("cpp", "int a::b::C::f(int x) const { return 1; }", ["a/b/C/f"]),
        ("cpp", "bool operator==(const A &a, const A &b) { return 1; }", ["operator=="]),
        ("rust", "impl<'a> Iterator for Walk<'a> { fn next(&mut self) {} }", ["Walk", "Walk/next"]),
        ("ruby", "class Parts::Store\n  attr_accessor :a, :b\nend", ["Parts/Store", "Parts/Store/a", "Parts/Store/b"]),
        ("lua", "local t = { run = function() end }", ["t", "t/run"]),
        ("kotlin", "fun List<Int>.total() = sum()", ["total"]),
        ("csharp", "namespace A.B;\nclass C { int x, y; }", ["C", "C/x", "C/y"]),
        ("php", "<?php\nnamespace A { function f() {} }", ["A", "A/f"]),
    ],
)
def test_forms_of_definitions(language: str, source: str, expected: list[str]) -> None:
    assert paths(source, language) == expected


def test_what_is_nested_too_deeply_is_left_out() -> None:
    source = "".join(f"{' ' * depth}def f{depth}():\n" for depth in range(60)) + " " * 60 + "pass\n"
    assert max(symbol.depth for symbol in outline(source.encode(), "python").symbols) == MAX_DEPTH


def test_a_file_that_is_too_large_is_not_parsed() -> None:
    with pytest.raises(Unparsable, match="too large to parse"):
        outline(b"x = 1\n" * (MAX_BYTES // 6 + 1), "python")


def test_parsing_that_goes_on_for_minutes_is_ended_and_what_follows_is_parsed() -> None:
    before = sum(os.times()[:4])
    with pytest.raises(Unparsable, match="too long to parse"):
        outline(b"%w(" * 40_000, "ruby")
    assert sum(os.times()[:4]) - before < 10  # seconds of a processor, children's included
    assert paths("def one; end", "ruby") == ["one"]


@pytest.mark.parametrize(
    ("language", "piece", "symbols"),
    [("c", b"#define x y\n", 10_000), ("python", b"class A:\n x=1\n", 20_000), ("bash", b"echo " + b"a " * 99, 0)],
)
def test_long_files_are_read_whole(language: str, piece: bytes, symbols: int) -> None:
    assert len(outline(piece * 10_000 if symbols else piece * 400, language).symbols) == symbols
