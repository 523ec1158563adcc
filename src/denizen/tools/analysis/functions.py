"""Each function's size and complexity (McCabe): decisions, counted by lizard, in Bash by its grammar."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from denizen.structure import FUNCTIONS, IndexedFile, Symbol
from denizen.structure.grammar import grammar, parse
from denizen.tools.analysis.scope import Findings, Scope
from denizen.tools.text import printable

_ENDINGS = {
    "python": "py",
    "javascript": "js",
    "typescript": "ts",
    "tsx": "tsx",
    "go": "go",
    "rust": "rs",
    "java": "java",
    "c": "c",
    "cpp": "cpp",
    "csharp": "cs",
    "ruby": "rb",
    "php": "php",
    "lua": "lua",
    "kotlin": "kt",
    "swift": "swift",
}
"""By which lizard knows the languages that it counts in."""
_DECISIONS = '["if" "elif" "for" "while" "until" "select" "&&" "||"] @decision (case_item) @decision'
"""In Bash."""


class Function(NamedTuple):
    """A function: where it is, how `view` is told of it, its decisions + 1, and its lines, all and with code."""

    file: str
    name: str
    line: int
    complexity: int
    lines: int
    code: int
    parameters: int

    @property
    def path(self) -> str:
        """`src/store.py/Store/add`."""
        return f"{self.file}/{self.name}"


def functions(scope: Scope) -> Iterator[Function]:
    """All functions, file by file."""
    symbols: dict[str, list[Symbol]] = {}
    for located in scope.index.symbols(kinds=FUNCTIONS, below=scope.below):
        symbols.setdefault(located.file, []).append(located.symbol)
    for file, source in scope.sources():
        known = symbols.get(file.path, [])
        measure = _by_grammar if file.language == "bash" else _by_lizard
        try:
            found = list(measure(file, source, known))
        except Exception as broken:  # noqa: BLE001 (lizard guesses its way through anything, and may stumble anyhow)
            scope.passed.append(f"{file.path} ({broken!r})")
        else:
            yield from found


def most_complex(scope: Scope) -> Findings:
    """The functions with the most decisions."""
    found = sorted(functions(scope), key=lambda each: (-each.complexity, each.path, each.line))
    findings = Findings(f"{len(found):,} functions; complexity, function, lines")
    for each in found:
        findings.add(f"{each.complexity:>4}  {_place(each)}  {each.lines}", **each._asdict())
    return findings


def longest(scope: Scope) -> Findings:
    """The functions with the most lines."""
    found = sorted(functions(scope), key=lambda each: (-each.lines, each.path, each.line))
    findings = Findings(f"{len(found):,} functions; lines, function, complexity")
    for each in found:
        findings.add(f"{each.lines:>4}  {_place(each)}  {each.complexity}", **each._asdict())
    return findings


def _place(function: Function) -> str:
    return printable(f"{function.path}:{function.line}")


def _by_lizard(file: IndexedFile, source: bytes, known: Sequence[Symbol]) -> Iterator[Function]:
    import lizard

    name, text = f"code.{_ENDINGS[file.language]}", source.decode(errors="replace")
    for each in lizard.analyze_file.analyze_source_code(name, text).function_list:
        name = _name(each.name, each.start_line, known)
        lines = each.end_line - each.start_line + 1
        complexity, code, parameters = each.cyclomatic_complexity, each.nloc, each.parameter_count
        yield Function(file.path, name, each.start_line, complexity, lines, code, parameters)


def _name(name: str, line: int, known: Sequence[Symbol]) -> str:
    """The path of the symbol that it is, or is in; its own name where there is none."""
    around = [symbol for symbol in known if symbol.first <= line <= symbol.last]
    inner = max(around, key=lambda symbol: symbol.depth, default=None)
    if inner is None:
        return name.replace("::", "/")
    return inner.path if inner.line == line else f"{inner.path} {name if '(' in name else f'({name})'}"


def _by_grammar(file: IndexedFile, source: bytes, known: Sequence[Symbol]) -> Iterator[Function]:
    import tree_sitter

    tree = parse(source, "bash")
    if tree is None:
        return
    query = tree_sitter.Query(grammar("bash").language, _DECISIONS)
    nodes = tree_sitter.QueryCursor(query).captures(tree.root_node).get("decision", [])
    lines = source.splitlines()
    for symbol in known:
        decisions = sum(symbol.start <= node.start_byte < symbol.end for node in nodes)
        code = sum(bool(line.strip()) for line in lines[symbol.line - 1 : symbol.last])
        yield Function(file.path, symbol.path, symbol.line, decisions + 1, symbol.last - symbol.line + 1, code, 0)
