"""Full-text search over sessions, and sums of their usage, derived from transcripts."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from denizen.entries import AnyEntry, AssistantEntry, CompactionEntry, EndEntry, SessionEntry, UserEntry
from denizen.messages import Text, Usage, UserMessage
from denizen.sessions.index import title_of
from denizen.text.terms import index_terms, matches_prefixes, query_terms, storable

MAX_TEXT_CHARS = 20_000
"""Characters of a message that are indexed."""
_MAX_TERM_CHARS = 100
_SHOWN_CHARS, _SHOWN_BEFORE_CHARS = 200, 60

UsageBy = Literal["model", "channel", "session", "profile"]


class IndexedMessage(NamedTuple):
    """A message, and its search terms, separated by spaces."""

    entry: str
    role: str
    at: float
    text: str
    terms: str


class UsageRecord(NamedTuple):
    """The usage of one entry: a model call, or the end of a turn with its retries and errors."""

    entry: str
    at: float
    model: str
    calls: int = 0
    retries: int = 0
    errors: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_usd: float = 0.0
    seconds: float = 0.0


class IndexProgress(NamedTuple):
    """When the session (or the fork) began, and when the last indexed entry was written."""

    began: float = 0.0
    last: float = 0.0


class FoundSession(msgspec.Struct, frozen=True):
    """A session in which words were said: the latest message with all of them, and the number of such messages.

    `text` is the message's text around the words, `at` in seconds since the epoch.
    """

    session_key: str
    title: str
    entry: str
    role: str
    at: float
    text: str
    hits: int


class UsageRow(msgspec.Struct, frozen=True):
    """The usage of a day and a model, channel, session or profile; `seconds` is the time spent in model calls."""

    day: str
    name: str
    calls: int
    retries: int
    errors: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    cost_usd: float
    seconds: float


class SearchIndex(Protocol):
    """Searches transcripts and sums their usage. May take seconds. Raises DenizenError."""

    def find(self, words: str, limit: int) -> Sequence[FoundSession]:
        """The sessions in which all the words were said in one message, the latest first."""

    def usage(self, since: float, utc_offset: float, by: UsageBy) -> Sequence[UsageRow]:
        """The usage since that time, by day; days begin `utc_offset` seconds before those of UTC."""


def read_entries(
    entries: Iterable[AnyEntry], progress: IndexProgress
) -> tuple[list[IndexedMessage], list[UsageRecord], IndexProgress]:
    """The messages and usage of a session's next entries. Usage that a fork copied isn't counted again."""
    said, spent = list[IndexedMessage](), list[UsageRecord]()
    began, last = progress
    for entry in entries:
        at = entry.at.timestamp() if entry.at else last
        usage, model = Usage(), ""
        match entry:
            case SessionEntry():
                began = at
            case UserEntry(message=message):
                said += _index_message(entry.id, "user", at, message.text)
            case AssistantEntry(message=message):
                said += _index_message(entry.id, "assistant", at, message.text)
                usage, model = message.usage, message.model
            case CompactionEntry(usage=usage):
                pass
            case EndEntry() if at >= began and (entry.retries or entry.stop_reason == "error"):
                errors = int(entry.stop_reason == "error")
                spent.append(UsageRecord(entry.id, at, entry.model, retries=entry.retries, errors=errors))
        if at >= began and (usage != Usage() or isinstance(entry, AssistantEntry)):
            tokens = (usage.input or 0, usage.output or 0, usage.cache_read or 0, usage.cache_write or 0)
            spent.append(UsageRecord(entry.id, at, model, 1, 0, 0, *tokens, usage.cost_usd or 0.0, max(at - last, 0.0)))
        last = at
    return said, spent, IndexProgress(began, last)


def _index_message(entry: str, role: str, at: float, text: str) -> list[IndexedMessage]:
    text = storable(text[:MAX_TEXT_CHARS])
    terms = terms_of(text)
    return [IndexedMessage(entry, role, at, text, terms)] if terms else []


def terms_of(text: str) -> str:
    """The search terms of a text, each once, separated by spaces."""
    return " ".join({term[:_MAX_TERM_CHARS]: None for term in index_terms(text)})


def searched_terms(words: str) -> list[tuple[str, bool]]:
    """The terms of a query, each with whether it also matches as a prefix."""
    return [(term[:_MAX_TERM_CHARS], matches_prefixes(term)) for term in query_terms(words)]


def found_session(key: str, first: str, said: Sequence[str | float], hits: int, words: str) -> FoundSession:
    """A search result: `first` is the session's first user message; `said` the found entry, role, time and text."""
    entry, role, at, text = said
    flat = " ".join(str(text).split())
    lower = flat.lower()
    places = [place for word in words.lower().split() if (place := lower.find(word)) >= 0]
    start = max(min(places, default=0) - _SHOWN_BEFORE_CHARS, 0)
    start = flat.find(" ", start - 1) + 1 if start and " " in flat[start : start + _SHOWN_BEFORE_CHARS] else start
    shown = f"{'…' if start else ''}{flat[start : start + _SHOWN_CHARS]}"
    shown += "…" if len(flat) > start + _SHOWN_CHARS else ""
    return FoundSession(
        key, title_of(UserMessage([Text(first or flat)])), str(entry), str(role), float(at), shown, hits
    )
