"""Replies that come in pieces, and what is shown of them."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from denizen.ports import StreamFilter


def cut(text: str, places: Iterable[int]) -> Iterator[str]:
    """The text in pieces that end at those places."""
    yield from (text[start:end] for start, end in pairwise(sorted({0, len(text), *places})))


def shown(spoken: StreamFilter, pieces: Iterable[str]) -> str:
    """What is shown while the pieces come, before the reply is complete."""
    return "".join([spoken.feed(piece) for piece in pieces])


def begins(reply: str, words: str) -> bool:
    """Whether a reply begins with those words, but for white space around either."""
    return reply.strip().startswith(words.strip())
