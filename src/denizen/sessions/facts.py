"""What can be found and counted of sessions, derived from their entries."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from denizen.entries import AnyEntry, AssistantEntry, CompactionEntry, EndEntry, SessionEntry, UserEntry
from denizen.messages import Text, Usage, UserMessage
from denizen.sessions.index import title_of
from denizen.text.terms import index_terms, matches_prefixes, query_terms, storable

MAX_TEXT_CHARS = 20_000
"""Characters of a message that can be found."""
_MAX_TERM_CHARS = 100
_SHOWN_CHARS, _SHOWN_BEFORE_CHARS = 200, 60

UsageBy = Literal["model", "channel", "session", "profile"]


class Said(NamedTuple):
    """A message of an entry, and the terms by which it is found, between spaces."""

    entry: str
    role: str
    at: float
    text: str
    terms: str


class Spent(NamedTuple):
    """What an entry adds to the sums: a model call, or the end of a turn with its retries and errors."""

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


class ReadProgress(NamedTuple):
    """When the session began (a fork: when it was made), and when the last entry was written that was read."""

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
    """The sums of a day and a model, channel, session or profile; `seconds` are those that calls of models took."""

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
    """Finds and counts what the transcripts hold; it is derived from them. Raises DenizenError. It may take seconds."""

    def find(self, words: str, limit: int) -> Sequence[FoundSession]:
        """The sessions in which all the words were said in one message, the latest first."""

    def usage(self, since: float, utc_offset: float, by: UsageBy) -> Sequence[UsageRow]:
        """The sums since that time, by days that begin `utc_offset` seconds before those of UTC."""


def facts_of(entries: Iterable[AnyEntry], progress: ReadProgress) -> tuple[list[Said], list[Spent], ReadProgress]:
    """What a session's next entries say and cost; of a fork, only what was written in it costs."""
    said, spent = list[Said](), list[Spent]()
    began, last = progress
    for entry in entries:
        at = entry.at.timestamp() if entry.at else last
        usage, model = Usage(), ""
        match entry:
            case SessionEntry():
                began = at
            case UserEntry(message=message):
                said += _said(entry.id, "user", at, message.text)
            case AssistantEntry(message=message):
                said += _said(entry.id, "assistant", at, message.text)
                usage, model = message.usage, message.model
            case CompactionEntry(usage=usage):
                pass
            case EndEntry() if at >= began and (entry.retries or entry.stop_reason == "error"):
                errors = int(entry.stop_reason == "error")
                spent.append(Spent(entry.id, at, entry.model, retries=entry.retries, errors=errors))
        if at >= began and (usage != Usage() or isinstance(entry, AssistantEntry)):
            tokens = (usage.input or 0, usage.output or 0, usage.cache_read or 0, usage.cache_write or 0)
            spent.append(Spent(entry.id, at, model, 1, 0, 0, *tokens, usage.cost_usd or 0.0, max(at - last, 0.0)))
        last = at
    return said, spent, ReadProgress(began, last)


def _said(entry: str, role: str, at: float, text: str) -> list[Said]:
    text = storable(text[:MAX_TEXT_CHARS])
    terms = terms_of(text)
    return [Said(entry, role, at, text, terms)] if terms else []


def terms_of(text: str) -> str:
    """The terms by which a text is found, each once, between spaces."""
    return " ".join({term[:_MAX_TERM_CHARS]: None for term in index_terms(text)})


def searched_terms(words: str) -> list[tuple[str, bool]]:
    """The terms that a message must have, and whether each may also begin a longer one."""
    return [(term[:_MAX_TERM_CHARS], matches_prefixes(term)) for term in query_terms(words)]


def found_session(key: str, first: str, said: Sequence[str | float], hits: int, words: str) -> FoundSession:
    """A session with that `first` message of its user, in which a message was found: its entry, role, time and text."""
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
