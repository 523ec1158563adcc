"""The parts of a definition in the source: its range with comments and decorators, its name, signature and doc."""

import re
from bisect import bisect_left
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_NAME_CHARS = 200
MAX_SIGNATURE_CHARS = 300
MAX_DOC_CHARS = 160
"""Characters."""
_MAX_INDENT = 200
"""Bytes that the first word of a line may be indented."""

_TERMINATOR = re.compile(rb"[ \t]*[;,]")
_BLANK = re.compile(rb"[ \t]*")
_NEXT_LINE = re.compile(rb"[ \t]*\r?\n")
_ABOUT_THE_FILE = re.compile(rb"(?i)\bcoding[:=]|copyright|licen[cs]e|spdx")
_SPACE = re.compile(rb"\s*")
_TYPE_ARGUMENTS = re.compile(r"<[^<>]*>")
_OPERATOR = re.compile(r"operator\s*[^\s\w]|^[^\w]+$")
_DECORATORS = frozenset(
    {"decorator", "attribute", "attribute_list", "attribute_item", "annotation", "marker_annotation", "comment"}
)
_COMMENT_MARKS = re.compile(r"^\s*(?:/\*+!?|//[/!]?|\*+/|\*(?!/)|#+!?|--+\[*|%+|;+)+\s?|\s*\*+/\s*$|\]\]\s*$")
_TAGS = re.compile(r"</?[a-zA-Z][^<>]{0,80}>")
_QUOTES = re.compile(r"^[a-zA-Z]{0,2}(?:\"\"\"|'''|\"|')|(?:\"\"\"|'''|\"|')$")
_WORD = re.compile(r"\w")
_TAIL = re.compile(r"(?:\s*(?:=>|[{:;=(,]|\.\.\.))+$")


class Span(NamedTuple):
    """Bytes of the source."""

    start: int
    end: int


class Extent(NamedTuple):
    """The whole range of a definition. `top` is its outermost node, `comments` those before it.

    The comments that it begins with end at `attributed`.
    """

    start: int
    attributed: int
    end: int
    top: "Node"
    comments: Sequence[Span]


class Extents:
    """Finds the range of definitions by byte positions: asking nodes for their neighbours takes much longer."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._line_ends = [found.start() for found in re.finditer(rb"\n", source)]
        self._ends: dict[int, tuple[Span, bool]] = {}
        self._comments: dict[int, int] = {}
        self._wholes: list[Node] = []
        self._parents: dict[int, Node] = {}
        self._header_end = 0

    def line(self, at: int) -> int:
        """The line (from 1) that a byte is in."""
        return bisect_left(self._line_ends, at) + 1

    def add(self, kind: str, node: "Node") -> None:
        """Take in a `comment`, an `attribute`, or a statement that may be a `whole`."""
        if kind == "whole":
            self._wholes.append(node)
            return
        span = Span(node.start_byte, self._strip(node.end_byte))
        self._ends[span.end] = span, kind == "comment"
        if kind == "comment":
            self._comments[span.start] = span.end

    def join(self, defined: Set[int]) -> None:
        """Find the statements that hold one definition and nothing else; `defined` are the ids of the definitions."""
        known = {*defined, *(node.id for node in self._wholes)}
        for whole in self._wholes:
            inside = [child for child in whole.children if child.id in known]
            if len(inside) == 1:
                self._parents[inside[0].id] = whole
        end = at = 0  # first comments of the file that are about the file: a script's first line, or a licence
        while following := self._comments.get(at):
            end, line = following, _NEXT_LINE.match(self._source, following)
            at = line.end() if line else -1
        if _ABOUT_THE_FILE.search(self._source, 0, end):
            self._header_end = end
        elif self._source.startswith(b"#!"):
            self._header_end = self._comments.get(0, 0)

    def of(self, node: "Node") -> Extent:
        """Where a definition begins and ends."""
        while parent := self._parents.get(node.id):
            node = parent
        start, comments = node.start_byte, list[Span]()
        while found := self._ends.get(self._strip(start)):
            span, is_comment = found
            if is_comment:  # it must be right above, and begin its line at the same column
                near = self.line(start) - self.line(span.end) <= 1 and span.end > self._header_end
                column = self._column(start) if near else None
                if column is None or column != self._column(span.start):
                    break
                comments.append(span)
            start = span.start
        comments.reverse()
        attributed = start
        for comment in comments:
            if comment.start == attributed:
                space = _SPACE.match(self._source, comment.end)
                attributed = space.end() if space else comment.end
        end = self._strip(node.end_byte)  # with a terminator, and the comment after it on its line
        terminator = _TERMINATOR.match(self._source, end)
        end = terminator.end() if terminator else end
        blank = _BLANK.match(self._source, end)
        comment_end = self._comments.get(blank.end() if blank else end, end)
        end = end if b"\n" in self._source[end:comment_end] else comment_end
        return Extent(start, attributed, end, node, comments)

    def _column(self, at: int) -> int | None:
        """How far it is indented; None if something is before it on its line."""
        indent = self._source[self._source.rfind(b"\n", 0, at) + 1 : at]
        return len(indent) if len(indent) < _MAX_INDENT and not indent.strip() else None

    def _strip(self, at: int) -> int:
        """The position after the last character before `at` that isn't blank."""
        while at > 0 and self._source[at - 1] in b" \t\r\n":
            at -= 1
        return at


def bare_name(source: bytes, kind: str, name: "Node", container: "Node | None") -> tuple[list[str], str]:
    """A definition's name, and the names of its containers as written with it (`Store` of C++'s `Store<T>::add`)."""
    text = text_of(source, name)
    if _OPERATOR.search(text):
        before, mark, last = text.rpartition("::")
        return ([_without_type_arguments(before)] if mark else []), last.replace(" ", "")
    *scopes, last = _without_type_arguments(text).split("::")
    if container is not None:
        scopes = [_without_type_arguments(text_of(source, container)), *scopes]
    return [scope for scope in scopes if scope], last.strip("\"'`:&$ ") or kind


def referenced_name(source: bytes, kind: str, node: "Node") -> str:
    """The name in a reference; of an import without its quotation marks."""
    text = text_of(source, node)
    return text.strip("\"'`<>; ") if kind == "import" else _without_type_arguments(text)


def text_of(source: bytes, node: "Node") -> str:
    """The node's text on one line; much faster than `node.text`."""
    text = source[node.start_byte : min(node.end_byte, node.start_byte + 4 * MAX_NAME_CHARS)]
    return " ".join(text.decode(errors="replace").split())[:MAX_NAME_CHARS]


def _without_type_arguments(text: str) -> str:
    """`Store` of `Store<T>`."""
    while (plain := _TYPE_ARGUMENTS.sub("", text)) != text:
        text = plain
    return text.partition("<")[0]


def signature(source: bytes, top: "Node", body: "Node | None") -> str:
    """How the symbol is declared: everything but its body and its decorators, on one line."""
    start = declaration_start(top)
    end = body.start_byte if body is not None else top.end_byte
    end = next(
        (child.start_byte for child in top.children if child.type == "comment" and child.start_byte > start), end
    )
    text = _one_line(source[start : min(end, start + 4 * MAX_SIGNATURE_CHARS)])
    if body is None:
        text = text.partition("{")[0]
    else:
        rest = _one_line(source[body.end_byte : min(top.end_byte, body.end_byte + 200)]).strip("} ;")
        if rest not in {"", "end"}:
            text = f"{text} … {rest}"  # `typedef struct … name`
    return _shortened(_TAIL.sub("", text.rstrip()), MAX_SIGNATURE_CHARS)


def declaration_start(top: "Node") -> int:
    """Where a declaration begins, after its decorators."""
    for child in top.children:
        if child.type == "modifiers":
            plain = [modifier for modifier in child.children if modifier.type not in _DECORATORS]
            if plain:
                return plain[0].start_byte
        elif child.type in {"class_definition", "function_definition"}:
            return declaration_start(child)
        elif child.type not in _DECORATORS:
            return child.start_byte
    return top.start_byte


def first_doc_line(source: bytes, comments: Sequence[Span], body: "Node | None") -> str:
    """The first line with words: of the docstring in `body`, else of the comments above."""
    first = body.named_child(0) if body is not None and body.named_child_count else None
    if first is not None and first.type == "expression_statement":
        first = first.named_child(0) if first.named_child_count else None
    if first is not None and first.type == "string":
        text = source[first.start_byte : min(first.end_byte, first.start_byte + 2000)].decode(errors="replace")
        for line in _QUOTES.sub("", text).splitlines():
            if _WORD.search(line):
                return _shortened(line.strip(), MAX_DOC_CHARS)
    for comment in comments:
        text = source[comment.start : min(comment.end, comment.start + 2000)].decode(errors="replace")
        for line in text.splitlines():
            words = _TAGS.sub("", _COMMENT_MARKS.sub("", line)).strip()
            if _WORD.search(words):
                return _shortened(words, MAX_DOC_CHARS)
    return ""


def _one_line(text: bytes) -> str:
    return " ".join(text.decode(errors="replace").split()).replace("( ", "(").replace(" )", ")").replace(",)", ")")


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
