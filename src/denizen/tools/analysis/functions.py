"""Each function's length, and its complexity (McCabe's): one more than the decisions in it, counted by the grammar."""

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from denizen.plural import counted
from denizen.structure import FUNCTIONS, IndexedFile, Symbol
from denizen.structure.languages import grammar, parse
from denizen.tools.analysis.scope import Findings, Scope
from denizen.tools.files.text import printable

if TYPE_CHECKING:
    from tree_sitter import Query

_WORDS: Final = (
    *("if", "elif", "elsif", "elseif", "unless", "guard", "for", "foreach", "while", "until", "select"),
    *("case", "when", "catch", "except", "rescue", "&&", "||", "and", "or"),
)
_NODES: Final = (
    *("ternary_expression", "conditional_expression", "conditional", "match_arm", "when_entry"),
    *("switch_expression_arm", "match_conditional_expression"),
)
"""Words and nodes of grammars that stand for a decision."""
_INSTEAD: Final = {
    "kotlin": ("when", ""),  # its entries count
    "php": ("case", "(case_statement)"),  # an enumeration has cases, too
    "python": ("conditional_expression", ""),  # its `if` counts
    "rust": ("for", "(for_expression)"),  # `impl Read for File`
    "swift": ("case", '(switch_entry "case")'),
}
"""By language, what doesn't count, and what does in its place."""
_ELSE: Final = {
    "csharp": "(switch_expression_arm . (discard) . (_) .) @else",
    "kotlin": "(when_entry !condition) @else",
    "python": '(case_clause "case" @else (case_pattern "_") !guard)',
    "rust": '(match_arm pattern: (match_pattern "_" !condition)) @else',
}
"""By language, the last of several ways: what is left over, and not decided."""

TOP_LEVEL = "(top level)"
"""In place of a function's name: what a file decides outside those that have one, as scripts and callbacks do."""


MOST_OUTSIDE = 3
"""Files that are named for what they decide there."""


class Function(NamedTuple):
    """A function: its file and its path there, the line of its name, its decisions + 1, and its lines."""

    file: str
    name: str
    line: int
    complexity: int
    lines: int

    @property
    def path(self) -> str:
        """How the tools are told of it, and its line: `src/store.py/Store/add:12`."""
        return printable(f"{self.file}/{self.name}:{self.line}")


def functions(scope: Scope) -> Iterator[Function]:
    """All functions that have a name, and the top level where it decides something, file by file.

    What a function without a name decides counts where it stands.
    """
    symbols: dict[str, list[Symbol]] = {}
    for located in scope.index.symbols(kinds=FUNCTIONS, below=scope.below):
        symbols.setdefault(located.file, []).append(located.symbol)
    for file, decisions in scope.measured("decisions", _decisions, int):
        yield from _measured(file, symbols.get(file.path, []), decisions)


def most_complex(scope: Scope) -> Findings:
    """The functions with the most decisions."""
    every = sorted(functions(scope), key=lambda each: (-each.complexity, -each.lines, each.path))
    found = [each for each in every if each.name != TOP_LEVEL]
    findings = Findings(f"{counted(len(found), 'function')}; complexity, function, lines")
    for each in found:
        findings.add(f"{each.complexity:>4}  {each.path}  {each.lines}", **each._asdict())
    outside = [f"{each.file} {each.complexity}" for each in every if each.name == TOP_LEVEL]
    if outside:
        findings.remarks = [f"complexity outside of named functions: {printable(', '.join(outside[:MOST_OUTSIDE]))}"]
    return findings


def longest(scope: Scope) -> Findings:
    """The functions with the most lines."""
    named = (each for each in functions(scope) if each.name != TOP_LEVEL)
    found = sorted(named, key=lambda each: (-each.lines, -each.complexity, each.path))
    findings = Findings(f"{counted(len(found), 'function')}; lines, function, complexity")
    for each in found:
        findings.add(f"{each.lines:>4}  {each.path}  {each.complexity}", **each._asdict())
    return findings


def _measured(file: IndexedFile, known: Sequence[Symbol], decided: Sequence[int]) -> Iterator[Function]:
    *counts, outside = _counts(known, decided)
    for symbol, decisions in zip(known, counts, strict=True):
        yield Function(file.path, symbol.path, symbol.line, decisions + 1, symbol.last - symbol.line + 1)
    if outside:
        yield Function(file.path, TOP_LEVEL, 1, outside + 1, file.lines)


def _counts(known: Sequence[Symbol], decisions: Sequence[int]) -> list[int]:
    """How many of the places are in each function and in none inside it, and how many in none at all.

    Both are in the order of the text.
    """
    counts = [0] * (len(known) + 1)
    around: list[int] = []
    coming = 0
    for place in decisions:
        while coming < len(known) and known[coming].start <= place:
            around.append(coming)
            coming += 1
        while around and known[around[-1]].end <= place:
            around.pop()
        counts[around[-1] if around else -1] += 1
    return counts


def _decisions(source: bytes, language: str) -> list[int]:
    """Where something is decided."""
    import tree_sitter

    found = tree_sitter.QueryCursor(_query(language)).captures(parse(source, language).root_node)
    otherwise = {node.id for node in found.get("else", [])}
    return sorted(node.start_byte for node in found.get("decision", []) if node.id not in otherwise)


@functools.cache
def _query(language: str) -> "Query":
    import tree_sitter

    known = grammar(language)
    without, other = _INSTEAD.get(language, ("", ""))
    words = [f'"{word}"' for word in _WORDS if word != without and known.id_for_node_kind(word, False)]
    nodes = [f"({node})" for node in _NODES if node != without and known.id_for_node_kind(node, True)]
    return tree_sitter.Query(known, f"[{' '.join([*words, *nodes, other])}] @decision {_ELSE.get(language, '')}")
