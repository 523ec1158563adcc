"""How far a definition reaches: with the comments before it, its decorators, and the statement that it is all of."""

import re
from bisect import bisect_left
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node

_END = re.compile(rb"[ \t]*[;,]")
_BLANK = re.compile(rb"[ \t]*")
_NEXT_LINE = re.compile(rb"[ \t]*\r?\n")
_OF_THE_FILE = re.compile(rb"(?i)\bcoding[:=]|copyright|licen[cs]e|spdx")
_WHITE = re.compile(rb"\s*")
_FURTHEST = 200
"""Bytes that the first word of a line may be indented."""


class Span(NamedTuple):
    """Bytes of the source."""

    start: int
    end: int


class Extent(NamedTuple):
    """All that belongs to a definition. `top` is the outermost node; `comments` stand before it.

    At `attributed` the comments that it begins with are over.
    """

    start: int
    attributed: int
    end: int
    top: "Node"
    comments: Sequence[Span]


class Lines:
    """Where the lines of a text begin."""

    def __init__(self, source: bytes) -> None:
        self._ends = [found.start() for found in re.finditer(rb"\n", source)]

    def number(self, at: int) -> int:
        """The line (from 1) that a byte is in."""
        return bisect_left(self._ends, at) + 1

    def start(self, at: int) -> int:
        """Where that line begins."""
        line = bisect_left(self._ends, at)
        return self._ends[line - 1] + 1 if line else 0


class Extents:
    """What belongs to definitions, found by place and not by asking nodes for their neighbours, which takes long."""

    def __init__(self, source: bytes) -> None:
        self.lines = Lines(source)
        self._source = source
        self._ends: dict[int, tuple[Span, bool]] = {}
        self._comments: dict[int, int] = {}
        self._wholes: list[Node] = []
        self._above: dict[int, Node] = {}
        self._head = 0

    def add(self, kind: str, node: "Node") -> None:
        """Take in a `comment`, an `attribute`, or a statement that may be a `whole`."""
        if kind == "whole":
            self._wholes.append(node)
            return
        span = Span(node.start_byte, self._back(node.end_byte))
        self._ends[span.end] = span, kind == "comment"
        if kind == "comment":
            self._comments[span.start] = span.end

    def join(self, defined: Set[int]) -> None:
        """Find out which statements are all about one definition; `defined` are the ids of the definitions' nodes."""
        known = {*defined, *(node.id for node in self._wholes)}
        for whole in self._wholes:
            inside = [child for child in whole.children if child.id in known]
            if len(inside) == 1:
                self._above[inside[0].id] = whole
        self._head = self._head_end()

    def of(self, node: "Node") -> Extent:
        """Where a definition begins and ends."""
        while above := self._above.get(node.id):
            node = above
        start, comments = self._begin(node.start_byte)
        attributed = start
        for comment in comments:
            if comment.start == attributed:
                white = _WHITE.match(self._source, comment.end)
                attributed = white.end() if white else comment.end
        return Extent(start, attributed, self._end(node.end_byte), node, comments)

    def _head_end(self) -> int:
        """The end of the file's first comment lines where they are about the file: a script's first, or a licence."""
        end = at = 0
        while following := self._comments.get(at):
            end, line = following, _NEXT_LINE.match(self._source, following)
            at = line.end() if line else -1
        if _OF_THE_FILE.search(self._source, 0, end):
            return end
        return self._comments.get(0, 0) if self._source.startswith(b"#!") else 0

    def _begin(self, start: int) -> tuple[int, list[Span]]:
        comments: list[Span] = []
        while found := self._ends.get(self._back(start)):
            span, is_comment = found
            if is_comment and not self._is_of(span, start):
                break
            comments += [span] if is_comment else []
            start = span.start
        return start, comments[::-1]

    def _is_of(self, comment: Span, start: int) -> bool:
        """Whether the comment stands right above, and begins its line at the same column."""
        column = self._column(start)
        near = self.lines.number(start) - self.lines.number(comment.end) <= 1
        return near and comment.end > self._head and column is not None and column == self._column(comment.start)

    def _column(self, at: int) -> int | None:
        """How far it is indented; None where something stands before it."""
        indent = self._source[self.lines.start(at) : at]
        return len(indent) if len(indent) < _FURTHEST and not indent.strip() else None

    def _end(self, end: int) -> int:
        end = self._back(end)
        found = _END.match(self._source, end)
        end = found.end() if found else end
        blank = _BLANK.match(self._source, end)
        comment = self._comments.get(blank.end() if blank else end, end)
        return end if b"\n" in self._source[end:comment] else comment

    def _back(self, at: int) -> int:
        """Behind the last sign before `at` that isn't blank."""
        while at > 0 and self._source[at - 1] in b" \t\r\n":
            at -= 1
        return at
