"""Lines inside of text literals, which mean something else when they are indented otherwise."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from denizen.structure.grammar import parse
from denizen.structure.parser import parsed

if TYPE_CHECKING:
    from tree_sitter import Node

_LITERALS = ("string", "heredoc", "nowdoc")
"""What the grammars' names of texts over several lines have in them."""
_SHIFTED = frozenset({"java", "swift"})
"""Languages in which such a text is indented by where it ends, and so has to be moved along."""


def literal_lines(source: bytes, language: str) -> frozenset[int]:
    """The lines (from 0) that begin inside of a text; not those of a text that is a statement, such as a docstring.

    Raises Unparsable.
    """
    return frozenset() if language in _SHIFTED else parsed(_literal_lines, source, language)


def _literal_lines(source: bytes, language: str) -> frozenset[int]:
    return frozenset(_lines(parse(source, language).root_node))


def _lines(root: "Node") -> Iterator[int]:
    pending = [root]
    while pending:
        node = pending.pop()
        first, last = node.start_point[0], node.end_point[0]
        if first == last:
            continue
        if any(word in node.type for word in _LITERALS):
            yield from range(first + 1, last + 1)
        elif node.type != "expression_statement" or "string" not in node.children[0].type:
            pending += node.children
