"""The terms by which a text is found: its words, the parts of identifiers, the letters of unspaced scripts."""

import functools
import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from denizen.config.pattern import pattern

MAX_TERMS = 64
"""Terms of a query that are looked for, the first ones."""
_MAX_CHARS = 20_000
"""Characters of a query that are looked at: it may be a whole task with what was piped in."""

_MAX_CACHED_CHARS = 40
"""Characters of a word whose terms are kept: longer ones don't return."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese, Korean."""
_JOINT = pattern(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_+")
_ACCENTS = pattern("[\u0300-\u036f]")
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "a an and any are as at be by can do does for from had has have how i if in into is it its me my not of on or "
        "our please so that the their then there these this those to us was we were what when where which who why will "
        "with you your",
    )
)
"""Words that say nothing of what a query is about."""


def index_terms(text: str) -> list[str]:
    """The terms to index a text by, in order: every word in small letters, without accents.

    `parseHTTP_v2` is found by itself, `parse`, `http` and `v2`; 認証 by itself and each of its letters.
    """
    return [word for run in _runs(text) for word in _forms(*run, single=True)]


def query_terms(text: str) -> list[str]:
    """The terms to look for, each once; words that every text has (`the`) only if there are no others."""
    words = dict.fromkeys(word for run in _runs(text[:_MAX_CHARS]) for word in _forms(*run, single=False))
    return [*([word for word in words if word not in _COMMON] or words)][:MAX_TERMS]


def matches_prefixes(word: str) -> bool:
    """Whether a term of a query is also looked for at the beginning of longer ones."""
    return len(word) > 2 and word.isascii()


def normalized(text: str) -> str:
    """The text without differences in case and white space: what two spellings of one fact have in common."""
    return storable(" ".join(text.split()).casefold())


def storable(text: str) -> str:
    """The text with `?` for what databases can't hold: NUL, and halves of surrogate pairs."""
    return text.replace("\0", "?").encode(errors="replace").decode()


def _runs(text: str) -> list[tuple[str, str]]:
    """The pieces of a text without what is between words, each as (unspaced letters, "") or ("", a word).

    Case stays, because it separates the words of identifiers.
    """
    plain = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    return _pieces().findall(unicodedata.normalize("NFKC", plain))


@functools.cache
def _pieces() -> re.Pattern[str]:
    # compiled when needed: with so many letters it takes 5 ms
    return re.compile(rf"([{_UNSPACED}]+)|([^\W{_UNSPACED}]+)")


def _forms(unspaced: str, word: str, *, single: bool) -> Sequence[str]:
    if unspaced:
        letters = unspaced if single or len(unspaced) == 1 else ()
        return [*letters, *map("".join, pairwise(unspaced))]
    return _forms_of_word(word) if len(word) <= _MAX_CACHED_CHARS else _forms_of_word.__wrapped__(word)


@functools.lru_cache(8192)  # most words of a text were in the texts before
def _forms_of_word(word: str) -> Sequence[str]:
    whole, parts = word.strip("_").casefold(), [part.casefold() for part in _JOINT.split(word) if part]
    return [whole, *parts] if len(parts) > 1 else parts
