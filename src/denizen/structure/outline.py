"""What a source file defines and what it refers to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from denizen.structure.extent import Extent, Extents, Lines
from denizen.structure.grammar import grammar, parse
from denizen.structure.languages import LANGUAGES, Language
from denizen.structure.naming import bare_name, plain_reference
from denizen.structure.parser import Unparsable, parsed
from denizen.structure.wording import declaration, first_doc_line, signature

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_BYTES = 1_000_000
"""Of a file that is parsed: at about 1.5 MB/s, and what a person writes is seldom a tenth of it."""
MOST_DEPTH = 20
"""How deep symbols are nested; what is deeper is left out."""
MOST_PROBLEMS = 20

TYPES = frozenset(
    {"class", "struct", "interface", "trait", "protocol", "enum", "union", "object", "type", "impl", "extension"}
)
"""Kinds of symbols that are types, or hold a type's members."""
FUNCTIONS = frozenset({"function", "method"})
REFERENCES = frozenset({"call", "base", "import", "imported"})
_LOCAL = frozenset({"variable", "constant", "field", "declaration"})
_HOLDS = frozenset({"name", "container", "body"})


class Symbol(NamedTuple):
    """Something that has a name in the code.

    `kind` is one of `TYPES`, `FUNCTIONS`, or `module`, `constant`, `variable`, `field`, `variant` (of an enum),
    `macro`, `declaration` (a function without its body). `path` is its name behind those of what it is in
    (`Store/add`), `depth` their number. It goes from the line `first` to `last` and from the byte `start` to `end`,
    with the comments, decorators and keywords that belong to it; its decorators and attributes begin at `attributed`,
    its declaration at `declared`. Its name is in `line`. `doc` is the first line of what is said of it.
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


class Reference(NamedTuple):
    """A place that refers to something by its name: which of that name is meant isn't known.

    `kind`: `call` (of a function, or of a type to make one), `base` (a type that another is made from), `import` (a
    module or file, as it is written) or `imported` (a name taken from it). `symbol` says in which of the file's symbols
    it is, by their position; -1: in none.
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
    references: Sequence[Reference]
    problems: Sequence[Problem]


class _Text(NamedTuple):
    """What is being read."""

    source: bytes
    language: Language
    lines: Lines


class _Found(NamedTuple):
    """A definition in the tree."""

    node: "Node"
    kind: str
    name: "Node"
    container: "Node | None"
    body: "Node | None"


def outline(source: bytes, language: str) -> Outline:
    """The structure of a UTF-8 text in one of `LANGUAGES`; where it breaks the grammar, of what can be made out.

    Raises Unparsable for one that is too large or takes too long.
    """
    if len(source) > MOST_BYTES:
        raise Unparsable(f"too large to parse (over {MOST_BYTES // 1_000_000} MB)")
    return parsed(_outline, source, language)


def _outline(source: bytes, language: str) -> Outline:
    tree = parse(source, language)
    found, references, extents = _read(source, language, tree.root_node)
    symbols = _symbols(_Text(source, LANGUAGES[language], extents.lines), found, extents)
    return Outline(language, symbols, _placed(source, references, symbols), [*_problems(tree.root_node)])


def _read(source: bytes, language: str, root: "Node") -> tuple[list[_Found], "list[tuple[str, Node]]", Extents]:
    """The definitions, the references, and what tells how far definitions reach."""
    import tree_sitter

    definitions: dict[tuple[int, int], _Found] = {}
    references: list[tuple[str, Node]] = []
    extents = Extents(source)
    matches = tree_sitter.QueryCursor(grammar(language).query).matches(root)
    for _, captures in sorted(matches, key=lambda match: match[0]):  # where two match, the first pattern counts
        kind = next(name for name in captures if name not in _HOLDS and not name.startswith("_"))
        node = captures[kind][0]
        if kind in REFERENCES:
            references += [(kind, node) for node in captures[kind]]
        elif kind in {"whole", "comment", "attribute"}:
            extents.add(kind, node)
        else:
            parts = {name: nodes[0] for name, nodes in captures.items()}
            found = _Found(node, kind, parts["name"], parts.get("container"), parts.get("body"))
            if found.name.start_byte < found.name.end_byte:  # else it is missing, and only supposed to be there
                definitions.setdefault((node.id, found.name.start_byte), found)
    extents.join({found.node.id for found in definitions.values()})
    return [*definitions.values()], references, extents


def _symbols(text: _Text, found: Sequence[_Found], extents: Extents) -> list[Symbol]:
    placed = [(extents.of(each.node), each) for each in found]
    placed.sort(key=lambda pair: (pair[0].start, -pair[0].end, pair[1].name.start_byte))
    symbols: list[Symbol] = []
    around: list[tuple[Symbol, _Found]] = []
    for extent, each in placed:
        while around and not (around[-1][0].start <= extent.start and extent.end <= around[-1][0].end):
            around.pop()
        while around and (around[-1][0].start, around[-1][0].end) == (extent.start, extent.end):
            around.pop()
        if _counts(each, around):
            parent = around[-1][0] if around else None
            symbols.append(_symbol(text, each, extent, parent))
            around.append((symbols[-1], each))
    return symbols


def _counts(found: _Found, around: Sequence[tuple[Symbol, _Found]]) -> bool:
    """Whether it is more than a local variable, or the same thing once more."""
    if not around:
        return True
    symbol, outer = around[-1]
    same = found.body is not None and outer.body is not None and found.body.id == outer.body.id
    local = found.kind in _LOCAL and symbol.kind in FUNCTIONS
    return not same and not local and symbol.depth < MOST_DEPTH


def _symbol(text: _Text, found: _Found, extent: Extent, parent: Symbol | None) -> Symbol:
    container, name = bare_name(text.source, found.kind, found.name, found.container)
    body = _body(found)
    kind = _kind(found.kind, name, container, parent)
    return Symbol(
        name,
        kind,
        "/".join([*([parent.path] if parent else []), *container, name]),
        parent.depth + 1 if parent else 0,
        found.name.start_point[0] + 1,
        text.lines.number(extent.start),
        text.lines.number(extent.end),
        extent.start,
        extent.attributed,
        max(declaration(extent.top), extent.attributed),
        extent.end,
        signature(text.source, extent.top, body),
        first_doc_line(text.source, extent.comments, body if text.language.docstrings else None),
    )


def _kind(kind: str, name: str, container: Sequence[str], parent: Symbol | None) -> str:
    inside_type = bool(container) or (parent is not None and parent.kind in TYPES)
    if kind == "function" and inside_type:
        return "method"
    if kind in {"variable", "constant"} and parent is not None and parent.kind in TYPES:
        return "field"
    return "constant" if kind == "variable" and len(name) > 1 and name.isupper() else kind


_BODIES = frozenset({"function_body", "class_body", "enum_class_body", "computed_property", "field_declaration_list"})


def _body(found: _Found) -> "Node | None":
    """What isn't part of the signature."""
    if found.kind == "variant":
        return None
    value = found.node.child_by_field_name("value")
    body = found.body or found.node.child_by_field_name("body") or (value and value.child_by_field_name("body"))
    return body or next((child for child in found.node.children if child.type in _BODIES), None)


def _placed(source: bytes, references: "Sequence[tuple[str, Node]]", symbols: Sequence[Symbol]) -> list[Reference]:
    """The references with the innermost symbol that each is in."""
    placed: list[Reference] = []
    around: list[int] = []
    coming = 0
    for kind, node in sorted(references, key=lambda pair: pair[1].start_byte):
        while coming < len(symbols) and symbols[coming].start <= node.start_byte:
            around.append(coming)
            coming += 1
        while around and symbols[around[-1]].end <= node.start_byte:
            around.pop()
        name = plain_reference(source, kind, node)
        if name:
            placed.append(Reference(name, kind, node.start_point[0] + 1, around[-1] if around else -1))
    return placed


def _problems(root: "Node") -> Iterator[Problem]:
    """The places that don't follow the grammar."""
    pending = [root] if root.has_error else []
    count = 0
    while pending and count < MOST_PROBLEMS:
        node = pending.pop()
        if node.is_error or node.is_missing:
            line, column = node.start_point
            what = f"`{node.type}` is missing" if node.is_missing else "not understood"
            yield Problem(line + 1, column + 1, what)
            count += 1
        if not node.is_missing:
            pending += [child for child in reversed(node.children) if child.has_error or child.is_missing]
