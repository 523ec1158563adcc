"""`analyze complexity`, `length` and `hotspots`: each function's length and complexity, and which files change often.

Complexity is McCabe's: one more than the decisions in a function, counted by the grammar of its language.
"""

import functools
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from denizen.errors import ToolRefused
from denizen.ports import ToolContext
from denizen.structure import FUNCTIONS, Symbol
from denizen.structure.languages import grammar, parse
from denizen.structure.outline import innermost_symbols
from denizen.text.plural import counted
from denizen.tools.files.text import printable
from denizen.tools.git import git_tool
from denizen.worlds.code.tools.analysis.scope import Findings, Scope

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
"""Words and nodes of grammars that are decisions."""
_REPLACEMENTS: Final = {
    "kotlin": ("when", ""),  # its entries count
    "php": ("case", "(case_statement)"),  # an enumeration has cases, too
    "python": ("conditional_expression", ""),  # its `if` counts
    "rust": ("for", "(for_expression)"),  # `impl Read for File`
    "swift": ("case", '(switch_entry "case")'),
}
"""By language, what doesn't count, and what counts instead."""
_ELSE: Final = {
    "csharp": "(switch_expression_arm . (discard) . (_) .) @else",
    "kotlin": "(when_entry !condition) @else",
    "python": '(case_clause "case" @else (case_pattern "_") !guard)',
    "rust": '(match_arm pattern: (match_pattern "_" !condition)) @else',
}
"""By language, the last branch, which decides nothing."""

TOP_LEVEL = "(top level)"  # the name for decisions outside named functions, as in scripts and callbacks
MAX_TOP_LEVEL = 3  # files listed for decisions outside named functions
MAX_COMMITS = 1000  # the latest that are looked at
_MAX_LOG_BYTES = 10_000_000


class FunctionMetrics(NamedTuple):
    """A function: its file and its path there, the line of its name, its decisions + 1, and its lines."""

    file: str
    name: str
    line: int
    complexity: int
    lines: int

    @property
    def path(self) -> str:
        """Its path as the tools take it, and its line: `src/store.py/Store/add:12`."""
        return printable(f"{self.file}/{self.name}:{self.line}")


def functions(scope: Scope) -> Iterator[FunctionMetrics]:
    """All named functions, file by file, and the top level of a file if it decides something.

    Decisions in a function without a name count for what is around it.
    """
    symbols: dict[str, list[Symbol]] = {}
    for located in scope.index.symbols(kinds=FUNCTIONS, below=scope.below):
        symbols.setdefault(located.file, []).append(located.symbol)
    for file, decisions in scope.measured("decisions", _decisions, int):
        known = symbols.get(file.path, [])
        counts = Counter(innermost_symbols(known, decisions))
        for at, symbol in enumerate(known):
            yield FunctionMetrics(file.path, symbol.path, symbol.line, counts[at] + 1, symbol.last - symbol.line + 1)
        if counts[-1]:
            yield FunctionMetrics(file.path, TOP_LEVEL, 1, counts[-1] + 1, file.lines)


def most_complex(scope: Scope) -> Findings:
    """The functions with the most decisions."""
    every = sorted(functions(scope), key=lambda each: (-each.complexity, -each.lines, each.path))
    found = [each for each in every if each.name != TOP_LEVEL]
    findings = Findings(f"{counted(len(found), 'function')}; complexity, function, lines")
    for each in found:
        findings.add(f"{each.complexity:>4}  {each.path}  {each.lines}", **each._asdict())
    outside = [f"{each.file} {each.complexity}" for each in every if each.name == TOP_LEVEL]
    if outside:
        findings.remarks = [f"complexity outside named functions: {printable(', '.join(outside[:MAX_TOP_LEVEL]))}"]
    return findings


def longest(scope: Scope) -> Findings:
    """The functions with the most lines."""
    named = (each for each in functions(scope) if each.name != TOP_LEVEL)
    found = sorted(named, key=lambda each: (-each.lines, -each.complexity, each.path))
    findings = Findings(f"{counted(len(found), 'function')}; lines, function, complexity")
    for each in found:
        findings.add(f"{each.lines:>4}  {each.path}  {each.complexity}", **each._asdict())
    return findings


async def changed_files(below: str, environ: Mapping[str, str], turn: ToolContext) -> Counter[str]:
    """In how many of the latest commits each file was changed. Raises ToolRefused if git fails."""
    args = f"log -n {MAX_COMMITS} --no-merges --no-renames --format= --name-only -- {shlex.quote(below)}"
    answer = await git_tool(environ, most=_MAX_LOG_BYTES).run({"args": args}, turn)
    if answer.is_error:
        raise ToolRefused(f"hotspots need the history of a git repository; git says: {answer.text.strip()}")
    return Counter(line for line in answer.text.splitlines() if line and not line.startswith("["))


def hotspots(scope: Scope, changes: Mapping[str, int]) -> Findings:
    """The files by their number of changes times the complexity of all their functions: where faults are likely."""
    by_file: dict[str, list[FunctionMetrics]] = {}
    for function in functions(scope):
        by_file.setdefault(function.file, []).append(function)
    complexity = {path: sum(each.complexity for each in found) for path, found in by_file.items()}
    scores = {path: changes.get(path, 0) * complexity[path] for path in by_file if path in changes}
    findings = Findings(
        f"{counted(len(scores), 'file')} changed in the latest {MAX_COMMITS:,} commits; changes x complexity, file"
    )
    for path in sorted(scores, key=lambda path: (-scores[path], path)):
        worst = max(by_file[path], key=lambda each: each.complexity)
        times = f"{changes[path]} x {complexity[path]}"
        row = f"{scores[path]:>6}  {path}  {times}, most in {worst.name} ({worst.complexity})"
        facts = {"score": scores[path], "file": path, "changes": changes[path], "complexity": complexity[path]}
        findings.add(printable(row), **facts, worst=worst.name)
    return findings


def _decisions(source: bytes, language: str) -> list[int]:
    """The byte positions of decisions."""
    import tree_sitter

    found = tree_sitter.QueryCursor(_query(language)).captures(parse(source, language).root_node)
    last_branches = {node.id for node in found.get("else", [])}
    return sorted(node.start_byte for node in found.get("decision", []) if node.id not in last_branches)


@functools.cache
def _query(language: str) -> "Query":
    import tree_sitter

    known = grammar(language)
    without, other = _REPLACEMENTS.get(language, ("", ""))
    words = [f'"{word}"' for word in _WORDS if word != without and known.id_for_node_kind(word, False)]
    nodes = [f"({node})" for node in _NODES if node != without and known.id_for_node_kind(node, True)]
    return tree_sitter.Query(known, f"[{' '.join([*words, *nodes, other])}] @decision {_ELSE.get(language, '')}")
