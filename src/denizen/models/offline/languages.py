"""Which languages files are written in, by their names."""

import fnmatch
import functools
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple


class Language(NamedTuple):
    """A language, and whether programs are written in it."""

    name: str
    source: bool


def language_of(path: str) -> Language | None:
    """The language of a file; None for one that isn't known, as are queries of tree-sitter, which look like Scheme."""
    if fnmatch.fnmatch(f"/{path}", "*/queries/*.scm"):
        return None
    name = PurePosixPath(path).name
    return _table().get(name) or _table().get(PurePosixPath(name).suffix.lower())


def languages_of(paths: Iterable[str]) -> Counter[Language]:
    """How many files there are of each language."""
    return Counter(filter(None, map(language_of, paths)))


def suffixes_of(language: str) -> list[str]:
    """The endings of a language's file names (`.py`); none for a language that isn't known."""
    return [key for key, known in _table().items() if key[0] == "." and known.name.lower() == language.lower()]


@functools.cache
def _table() -> dict[str, Language]:
    kinds = json.loads(Path(__file__).with_name("languages.json").read_text("utf-8"))
    return {
        key: Language(name, kind == "source")
        for kind, languages in kinds.items()
        for name, keys in languages.items()
        for key in keys
    }
