"""Names as they are used to speak of symbols."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 200
"""Characters of a name."""
_ARGUMENTS = re.compile(r"<[^<>]*>")
_OPERATOR = re.compile(r"operator\s*[^\s\w]|^[^\w]+$")


def bare_name(source: bytes, kind: str, name: "Node", container: "Node | None") -> tuple[list[str], str]:
    """A definition's name, and the names of what it says it is in (`Store` of C++'s `Store<T>::add`)."""
    text = text_of(source, name)
    if _OPERATOR.search(text):
        before, mark, last = text.rpartition("::")
        return ([_without_arguments(before)] if mark else []), last.replace(" ", "")
    *scopes, last = _without_arguments(text).split("::")
    if container is not None:
        scopes = [_without_arguments(text_of(source, container)), *scopes]
    return [scope for scope in scopes if scope], last.strip("\"'`:&$ ") or kind


def plain_reference(source: bytes, kind: str, node: "Node") -> str:
    """The name that a reference is by; of an import without quotation marks."""
    return text_of(source, node).strip("\"'`<>; ") if kind == "import" else _without_arguments(text_of(source, node))


def text_of(source: bytes, node: "Node") -> str:
    """What the node says, on one line; much sooner than the node itself would tell."""
    text = source[node.start_byte : min(node.end_byte, node.start_byte + 4 * LONGEST)]
    return " ".join(text.decode(errors="replace").split())[:LONGEST]


def _without_arguments(text: str) -> str:
    """The name of a type without what it is made for: `Store` of `Store<T>`."""
    while (plain := _ARGUMENTS.sub("", text)) != text:
        text = plain
    return text.partition("<")[0]
