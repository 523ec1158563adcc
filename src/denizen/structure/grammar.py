"""Grammars, loaded when the first file of their language is read."""

import functools
import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from denizen.structure.languages import LANGUAGES

if TYPE_CHECKING:
    import tree_sitter

QUERIES = Path(__file__).with_name("queries")


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


def parse(source: bytes, language: str) -> "tree_sitter.Tree":
    """The tree of a UTF-8 text. Only for what `parsed` runs: a hostile text takes it for ever."""
    import tree_sitter

    return tree_sitter.Parser(grammar(language).language).parse(source)
