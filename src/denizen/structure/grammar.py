"""Grammars, loaded when the first file of their language is read."""

import functools
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from denizen.structure.languages import LANGUAGES

if TYPE_CHECKING:
    import tree_sitter
    from tree_sitter import Node

QUERIES = Path(__file__).with_name("queries")
_STEP = 1 << 12
"""Bytes that the parser is given at once."""
_MOST_SIGNS = 5_000
"""Side by side in a tree that is looked into; more take a second, ten times as many take minutes."""
_MOST_LEVELS = 2_500
"""Of nodes with at least as many in them, in each other."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """How a language is read, and the queries for what its files define and refer to."""

    language: "tree_sitter.Language"
    query: "tree_sitter.Query"


@functools.cache
def grammar(language: str) -> Grammar:
    """The grammar of one of `LANGUAGES`."""
    import tree_sitter

    told = LANGUAGES[language]
    pointer: object = getattr(importlib.import_module(told.package), told.function)()
    read = tree_sitter.Language(pointer)
    return Grammar(read, tree_sitter.Query(read, query_text(language)))


def query_text(language: str) -> str:
    """The queries of a language, as they are written."""
    return "\n".join(
        (QUERIES / f"{name}.scm").read_text("utf-8") for name in LANGUAGES[language].queries or (language,)
    )


def parse(source: bytes, language: str) -> "tree_sitter.Tree | None":
    """The tree of a UTF-8 text; None where that takes far more work than its size warrants."""
    import tree_sitter

    left = 5000 + len(source) // 10  # each stands for 100 steps of the parser; usual code needs a third of that

    def exhausted(offset: int, has_error: bool) -> bool:
        nonlocal left
        left -= 1
        return left < 0

    parser = tree_sitter.Parser(grammar(language).language)
    try:
        tree = parser.parse(
            lambda at, _: source[at : at + _STEP], encoding="utf8", progress_callback=exhausted
        )  # by pieces: the progress is only told this way, and it lets other threads run meanwhile
    except ValueError:
        if left < 0:
            return None
        raise
    return None if tree and _is_endless(tree.root_node) else tree


def _is_endless(root: "Node") -> bool:
    """Whether so many signs stand side by side, and no name among them, or so many nodes in each other, that a query
    would take for ever.

    For each of the first tree-sitter looks for the next name behind it, for each of the others at all around it.
    """
    large = [(root, 0)]
    while large:
        node, depth = large.pop()
        children = node.children
        if depth > _MOST_LEVELS or (len(children) > _MOST_SIGNS and _longest_run(children) > _MOST_SIGNS):
            return True
        large += [(child, depth + 1) for child in children if child.descendant_count > _MOST_SIGNS]
    return False


def _longest_run(nodes: "Sequence[Node]") -> int:
    """How many in a row have no name."""
    return max((len(list(run)) for named, run in groupby(nodes, lambda node: node.is_named) if not named), default=0)
