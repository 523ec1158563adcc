"""What is said of a symbol in one line: its signature, and its documentation's first."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from denizen.structure.extent import Span

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST_SIGNATURE = 300
LONGEST_DOC = 160
"""Characters."""

_BEFORE = frozenset(
    {"decorator", "attribute", "attribute_list", "attribute_item", "annotation", "marker_annotation", "comment"}
)
_MARKS = re.compile(r"^\s*(?:/\*+!?|//[/!]?|\*+/|\*(?!/)|#+!?|--+\[*|%+|;+)+\s?|\s*\*+/\s*$|\]\]\s*$")
_TAGS = re.compile(r"</?[a-zA-Z][^<>]{0,80}>")
_QUOTES = re.compile(r"^[a-zA-Z]{0,2}(?:\"\"\"|'''|\"|')|(?:\"\"\"|'''|\"|')$")
_WORD = re.compile(r"\w")
_TAIL = re.compile(r"(?:\s*(?:=>|[{:;=(,]|\.\.\.))+$")
_CLOSED = frozenset({"", "end"})


def signature(source: bytes, top: "Node", body: "Node | None") -> str:
    """How the symbol is declared: all but its body and its decorators, on one line."""
    start = declaration(top)
    end = body.start_byte if body is not None else top.end_byte
    end = next(
        (child.start_byte for child in top.children if child.type == "comment" and child.start_byte > start), end
    )
    text = _line(source[start : min(end, start + 4 * LONGEST_SIGNATURE)])
    if body is None:
        text = text.partition("{")[0]
    elif (rest := _line(source[body.end_byte : min(top.end_byte, body.end_byte + 200)]).strip("} ;")) not in _CLOSED:
        text = f"{text} … {rest}"  # `typedef struct … name`
    text = _TAIL.sub("", text.rstrip())
    return text if len(text) <= LONGEST_SIGNATURE else text[: LONGEST_SIGNATURE - 1] + "…"


def declaration(top: "Node") -> int:
    """Where a declaration begins, after its decorators."""
    for child in top.children:
        if child.type == "modifiers":
            plain = [modifier for modifier in child.children if modifier.type not in _BEFORE]
            if plain:
                return plain[0].start_byte
        elif child.type not in _BEFORE:
            return declaration(child) if child.type in {"class_definition", "function_definition"} else child.start_byte
    return top.start_byte


def first_doc_line(source: bytes, comments: Sequence[Span], body: "Node | None") -> str:
    """The first line that says something: of the docstring in `body`, else of the comments above."""
    doc = _docstring(source, body) if body is not None else ""
    for comment in [] if doc else comments:
        text = source[comment.start : min(comment.end, comment.start + 2000)].decode(errors="replace")
        doc = next((words for line in text.splitlines() if (words := _words(line))), "")
        if doc:
            break
    return doc if len(doc) <= LONGEST_DOC else doc[: LONGEST_DOC - 1] + "…"


def _line(text: bytes) -> str:
    return " ".join(text.decode(errors="replace").split()).replace("( ", "(").replace(" )", ")").replace(",)", ")")


def _docstring(source: bytes, body: "Node") -> str:
    first = _inner(body)
    string = _inner(first) if first is not None and first.type == "expression_statement" else first
    if string is None or string.type != "string":
        return ""
    text = source[string.start_byte : min(string.end_byte, string.start_byte + 2000)].decode(errors="replace")
    return next((line.strip() for line in _QUOTES.sub("", text).splitlines() if _WORD.search(line)), "")


def _inner(node: "Node") -> "Node | None":
    return node.named_child(0) if node.named_child_count else None


def _words(line: str) -> str:
    words = _TAGS.sub("", _MARKS.sub("", line)).strip()
    return words if _WORD.search(words) else ""
