"""Symbols that a source file defines, and its references to others."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from denizen.structure.definitions import (
    Extent,
    Extents,
    bare_name,
    declaration_start,
    first_doc_line,
    referenced_name,
    signature,
)
from denizen.structure.languages import LANGUAGES, parse, symbol_query
from denizen.structure.parser import Unparsable, parsed

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_BYTES = 1_000_000
"""Of a file that is parsed, at about 1.5 MB/s; what a person writes is seldom a tenth of it."""
MAX_DEPTH = 20
"""How deep symbols are nested; what is deeper is left out."""
MAX_PROBLEMS = 20

TYPES = frozenset(
    {"class", "struct", "interface", "trait", "protocol", "enum", "union", "object", "type", "impl", "extension"}
)
"""Kinds of symbols that are types, or hold a type's members."""
FUNCTIONS = frozenset({"function", "method"})
REFERENCES = frozenset({"call", "base", "import", "imported"})
_LOCAL = frozenset({"variable", "constant", "field", "declaration"})
_PARTS = frozenset({"name", "container", "body"})
_BODIES = frozenset({"function_body", "class_body", "enum_class_body", "computed_property", "field_declaration_list"})


class Symbol(NamedTuple):
    """Something that has a name in the code.

    `kind` is one of `TYPES`, `FUNCTIONS`, or `module`, `constant`, `variable`, `field`, `variant` (of an enum),
    `macro`, `declaration` (a function without its body). `path` is its name after those of the symbols around it
    (`Store/add`), `depth` their number. It goes from the line `first` to `last` and from the byte `start` to `end`,
    with the comments, decorators and keywords that belong to it; its decorators and attributes begin at `attributed`,
    its declaration at `declared`. Its name is in `line`. `doc` is the first line of its documentation.
    """

    name: str
    kind: str
    path: str
    depth: int
    line: int
    first: int
    last: int
    start: int
    attributed: int
    declared: int
    end: int
    signature: str
    doc: str


class SymbolReference(NamedTuple):
    """A place that refers to something by its name; which one of that name isn't known.

    `kind`: `call` (of a function or a constructor), `base` (a type that another derives from), `import` (a module or
    file, as it is written) or `imported` (a name taken from it). `symbol` is the position of the symbol that it is in;
    -1: in none.
    """

    name: str
    kind: str
    line: int
    symbol: int


class Problem(NamedTuple):
    """A place that doesn't follow the grammar; line and column (in bytes) count from 1."""

    line: int
    column: int
    text: str


@dataclass(frozen=True, slots=True)
class Outline:
    """The structure of one file, in the order of its text."""

    language: str
    symbols: Sequence[Symbol]
    references: Sequence[SymbolReference]
    problems: Sequence[Problem]


class _Definition(NamedTuple):
    """A definition in the tree."""

    node: "Node"
    kind: str
    name: "Node"
    container: "Node | None"
    body: "Node | None"


def outline(source: bytes, language: str) -> Outline:
    """The structure of a UTF-8 text in one of `LANGUAGES`; if it breaks the grammar, as much as can be recognised.

    Raises Unparsable for one that is too large or takes too long.
    """
    if len(source) > MAX_BYTES:
        raise Unparsable(f"too large to parse (over {MAX_BYTES // 1_000_000} MB)")
    return parsed(_outline, source, language)


def _outline(source: bytes, language: str) -> Outline:
    import tree_sitter

    root = parse(source, language).root_node
    definitions: dict[tuple[int, int], _Definition] = {}
    references: list[tuple[str, Node]] = []
    extents = Extents(source)
    matches = tree_sitter.QueryCursor(symbol_query(language)).matches(root)
    for _, captures in sorted(matches, key=lambda match: match[0]):  # where two match, the first pattern counts
        kind = next(name for name in captures if name not in _PARTS and not name.startswith("_"))
        node = captures[kind][0]
        if kind in REFERENCES:
            references += [(kind, node) for node in captures[kind]]
        elif kind in {"whole", "comment", "attribute"}:
            extents.add(kind, node)
        else:
            parts = {name: nodes[0] for name, nodes in captures.items()}
            found = _Definition(node, kind, parts["name"], parts.get("container"), parts.get("body"))
            if found.name.start_byte < found.name.end_byte:  # else the parser made it up to recover from an error
                definitions.setdefault((node.id, found.name.start_byte), found)
    extents.join({found.node.id for found in definitions.values()})
    symbols = _symbols(source, [(extents.of(each.node), each) for each in definitions.values()], extents, language)
    references.sort(key=lambda pair: pair[1].start_byte)
    within = innermost_symbols(symbols, [node.start_byte for _, node in references])
    named = [
        SymbolReference(name, kind, node.start_point[0] + 1, symbol)
        for (kind, node), symbol in zip(references, within, strict=True)
        if (name := referenced_name(source, kind, node))
    ]
    return Outline(language, symbols, named, [*_problems(root)])


def _symbols(source: bytes, found: list[tuple[Extent, _Definition]], extents: Extents, language: str) -> list[Symbol]:
    found.sort(key=lambda pair: (pair[0].start, -pair[0].end, pair[1].name.start_byte))
    symbols: list[Symbol] = []
    outer: list[tuple[Symbol, _Definition]] = []
    for extent, each in found:
        while outer and not (outer[-1][0].start <= extent.start and extent.end <= outer[-1][0].end):
            outer.pop()
        while outer and (outer[-1][0].start, outer[-1][0].end) == (extent.start, extent.end):
            outer.pop()
        parent, around = outer[-1] if outer else (None, None)
        if parent and around:  # nested too deeply, a local variable of the symbol around it, or that once more
            same = each.body is not None and around.body is not None and each.body.id == around.body.id
            if same or parent.depth >= MAX_DEPTH or (each.kind in _LOCAL and parent.kind in FUNCTIONS):
                continue
        container, name = bare_name(source, each.kind, each.name, each.container)
        body = _body(each)
        symbol = Symbol(
            name,
            _kind(each.kind, name, container, parent),
            "/".join([*([parent.path] if parent else []), *container, name]),
            parent.depth + 1 if parent else 0,
            each.name.start_point[0] + 1,
            extents.line(extent.start),
            extents.line(extent.end),
            extent.start,
            extent.attributed,
            max(declaration_start(extent.top), extent.attributed),
            extent.end,
            signature(source, extent.top, body),
            first_doc_line(source, extent.comments, body if LANGUAGES[language].docstrings else None),
        )
        symbols.append(symbol)
        outer.append((symbol, each))
    return symbols


def _kind(kind: str, name: str, container: Sequence[str], parent: Symbol | None) -> str:
    in_type = parent is not None and parent.kind in TYPES
    if kind == "function" and (container or in_type):
        return "method"
    if kind in {"variable", "constant"} and in_type:
        return "field"
    return "constant" if kind == "variable" and len(name) > 1 and name.isupper() else kind


def _body(found: _Definition) -> "Node | None":
    """The part that doesn't belong to the signature."""
    if found.kind == "variant":
        return None
    value = found.node.child_by_field_name("value")
    body = found.body or found.node.child_by_field_name("body") or (value and value.child_by_field_name("body"))
    return body or next((child for child in found.node.children if child.type in _BODIES), None)


def innermost_symbols(symbols: Sequence[Symbol], places: Iterable[int]) -> Iterator[int]:
    """For each byte of the source, the position of the innermost symbol that holds it; -1: none. Both are sorted."""
    outer: list[int] = []
    following = 0
    for place in places:
        while following < len(symbols) and symbols[following].start <= place:
            outer.append(following)
            following += 1
        while outer and symbols[outer[-1]].end <= place:
            outer.pop()
        yield outer[-1] if outer else -1


def _problems(root: "Node") -> Iterator[Problem]:
    """The places that don't follow the grammar."""
    pending = [root] if root.has_error else []
    count = 0
    while pending and count < MAX_PROBLEMS:
        node = pending.pop()
        if node.is_error or node.is_missing:
            line, column = node.start_point
            what = f"`{node.type}` is missing" if node.is_missing else "not understood"
            yield Problem(line + 1, column + 1, what)
            count += 1
        if not node.is_missing:
            pending += [child for child in reversed(node.children) if child.has_error or child.is_missing]


def literal_lines(source: bytes, language: str) -> frozenset[int]:
    """The lines (from 0) that begin inside a string, where another indentation means something else.

    Strings that are statements, such as docstrings, don't count; nor those of Java and Swift, which are indented by
    where they end, so they move along with the code. Raises Unparsable.
    """
    return frozenset() if language in {"java", "swift"} else parsed(_literal_lines, source, language)


def _literal_lines(source: bytes, language: str) -> frozenset[int]:
    lines = set[int]()
    pending = [parse(source, language).root_node]
    while pending:
        node = pending.pop()
        first, last = node.start_point[0], node.end_point[0]
        if first == last:
            continue
        if any(word in node.type for word in ("string", "heredoc", "nowdoc")):
            lines.update(range(first + 1, last + 1))
        elif node.type != "expression_statement" or "string" not in node.children[0].type:
            pending += node.children
    return frozenset(lines)
