"""Memory beyond a session: the project's facts, the user's facts, and the notes."""

import asyncio
import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from denizen.config import Config
from denizen.config.home import places, project_folder
from denizen.config.zone import user_zone
from denizen.errors import ToolRefused
from denizen.memory.embeddings import Embeddings
from denizen.memory.note_files import NoteFiles
from denizen.memory.notes import Notes, one_line, plain_fact
from denizen.memory.postgres import FactRows, MemoryTables, NoteRows
from denizen.memory.sqlite import FactFile
from denizen.memory.store import FactStore, FoundFact
from denizen.ports import Fact, Scope
from denizen.runtime.clock import Clock
from denizen.runtime.postgres import PostgresDatabase
from denizen.text.terms import index_terms, matches_prefixes, normalized, query_terms
from denizen.trusted.session_files import SessionFiles

MAX_CONTEXT_CHARS = 200
"""Characters of a fact's context."""
HALF_LIFE_DAYS = 90.0
"""Days after which the freshness part of a fact's score has halved."""
_FRESHNESS = 0.3
"""The share of freshness in a fact's score."""


def open_memory(
    config: Config,
    *,
    clock: Clock,
    redact: Callable[[str], str] = str,
    with_notes: bool = False,
    database: PostgresDatabase | None = None,
) -> "LongTermMemory":
    """The memory of a located configuration: the project's and the user's; `with_notes`: `MEMORY.md`, too.

    It is in files of the home and the workspace, or in a `database` that several machines share; close it then. No
    secret that `redact` knows is kept. Raises ConfigError when the settings of the embeddings are wrong, or the
    database can't be used.
    """
    home, workspace = places(config)
    own, settings = config.agent.workspace_dir, config.memory.embeddings
    folder = project_folder(home, workspace)
    tables = MemoryTables(database) if database else None
    if tables:
        tables.prepare()
    project = FactRows(tables, folder.name) if tables else FactFile(folder / "memory.db")
    user = FactRows(tables, "user") if tables else FactFile(home / "memory.db")
    notes = NoteRows(tables) if tables else NoteFiles(own, SessionFiles.of(config))
    return LongTermMemory(
        project=None if workspace == own else FactStore(project, "p", clock),
        user=FactStore(user, "u", clock),
        notes=Notes(notes, clock, user_zone(config)) if with_notes else None,
        embeddings=Embeddings(settings, clock) if settings.base_url else None,
        clock=clock,
        redact=redact,
        close=tables.close if tables else lambda: None,
    )


class LongTermMemory:
    """Facts in one place per scope, found in all of them: by words and, where `embeddings` are given, by meaning.

    Without a `project` all is the user's. With `notes`, each fact is a line there, too.
    """

    def __init__(
        self,
        *,
        project: FactStore | None,
        user: FactStore,
        clock: Clock,
        notes: Notes | None = None,
        embeddings: Embeddings | None = None,
        redact: Callable[[str], str] = str,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._project = project
        self._user = user
        self._stores = [project, user] if project else [user]
        self._notes = notes
        self._embeddings = embeddings
        self._clock = clock
        self._redact = redact
        self.close = close
        """Gives back its connection to a database."""

    async def remember(
        self,
        text: str,
        *,
        context: str = "",
        weight: float = 0.5,
        scope: Scope = "project",
        source: str = "",
        untrusted: bool = False,
    ) -> str:
        """Keep a fact, once; says where it went. `untrusted` stays with it."""
        fact = plain_fact(self._redact(text))
        context = one_line(self._redact(context))[:MAX_CONTEXT_CHARS]
        if scope == "today":
            return await asyncio.to_thread(self._note, f"{fact} ({context})" if context else fact, untrusted)
        store = self._project if self._project and scope == "project" else self._user

        def keep() -> str:
            where = "for this project" if store is self._project else "for the user"
            noted = self._notes.remember(fact, untrusted=untrusted) if self._notes else ""
            bounded = min(max(weight, 0.0), 1.0)
            new = store.add(fact, context=context, weight=bounded, source=source, untrusted=untrusted)
            done = f"Remembered {where}." if new else f"Known {where} already; it counts as said today."
            return f"{done} {noted}".rstrip()

        return await asyncio.to_thread(keep)

    def keep(self, facts: Iterable[Fact]) -> int:
        """Keep facts of another memory, with their dates; how many are new. Lines of notes are left out."""
        new = 0
        for fact in facts:
            store = self._project if self._project and fact.id.startswith("p") else self._user
            text, context = plain_fact(self._redact(fact.text)), self._redact(fact.context)
            new += bool(fact.id) and store.keep(replace(fact, text=text, context=context))
        return new

    async def recall(self, query: str, limit: int = 10) -> Sequence[Fact]:
        """The facts that fit best, best first; for an empty query the latest."""
        query, limit = self._redact(query).strip(), max(limit, 0)
        if not query:
            return await asyncio.to_thread(self._latest, limit)
        total, found = await asyncio.to_thread(self._with_terms, query)
        near = await self._embeddings.similarities(query, self._stores) if self._embeddings else {}

        def nearest() -> list[FoundFact]:
            """The facts that are nearest in meaning, but for those that are found already."""
            known = {each.fact.id for each in found}
            ids = [each for each in heapq.nlargest(limit, near, key=near.__getitem__) if each not in known]
            facts = [fact for store in self._stores for each in ids if (fact := store.by_id(each))]
            return [FoundFact(fact, frozenset()) for fact in facts]

        if found := found + await asyncio.to_thread(nearest):
            return _once(rank(found, total, near, self._clock.now()))[:limit]
        return await asyncio.to_thread(self._containing, query, limit)

    async def forget(self, what: str) -> str:
        """Forget the fact of that id, that text, or the only one that has all of these words."""

        def forget() -> str:
            fact = self.find(what.strip())
            gone = [store.remove(fact.text) for store in self._stores]
            if not any([*gone, self._notes and self._notes.forget(fact.text)]):
                raise ToolRefused(f"It is in the daily note {fact.source}, which is the user's to change: {fact.text}")
            return f"Forgotten: {fact.text}"

        return await asyncio.to_thread(forget)

    def _note(self, fact: str, untrusted: bool) -> str:
        if self._notes is None:
            raise ToolRefused("Nothing was remembered: this agent has no daily notes; leave out the scope")
        return self._notes.append_today(fact, untrusted=untrusted)

    def for_prompt(self, days: int) -> list[tuple[str, str]]:
        """What a session's prompt holds of the notes, as `Notes.for_prompt` has it; nothing if none are kept."""
        return self._notes.for_prompt(days) if self._notes else []

    def facts(self) -> list[Fact]:
        """All of them, the latest first."""
        return self._latest(-1)

    def find(self, what: str) -> Fact:
        """The fact of that id, that text, or the only one that has all of these words. Raises ToolRefused."""
        for store in self._stores:
            if fact := store.by_id(what) or store.by_text(what):
                return fact
        terms = set(query_terms(what))
        fitting = [found.fact for found in self._with_terms(what)[1] if terms and found.terms >= terms]
        fitting = [fact for fact in fitting if normalized(fact.text) == normalized(what)] or fitting
        if not fitting:
            raise ToolRefused(f"Nothing is remembered that matches {what!r:.200}.")
        if len(fitting) > 1:
            listed = "\n".join(f"- {fact.id or 'note'}: {fact.text}" for fact in fitting[:10])
            raise ToolRefused(f"{len(fitting)} facts match; forget one by its id or its whole text:\n{listed}")
        return fitting[0]

    def _latest(self, limit: int) -> list[Fact]:
        facts = [*_once(fact for store in self._stores for fact in store.latest(limit)), *self._note_facts()]
        facts = sorted(_once(facts), key=lambda fact: fact.at or datetime.min.replace(tzinfo=UTC), reverse=True)
        return facts if limit < 0 else facts[:limit]

    def _with_terms(self, query: str) -> tuple[int, list[FoundFact]]:
        """The number of facts, and those with any of the query's terms or with words that begin with one."""
        terms = query_terms(query)
        results = [store.with_terms(terms) for store in self._stores]
        notes = self._note_facts()
        found: dict[str, FoundFact] = {}
        for fact in notes:
            own = index_terms(f"{fact.text} {fact.at:%Y-%m-%d}" if fact.at else fact.text)
            if has := frozenset(
                term
                for term in terms
                if term in own or (matches_prefixes(term) and any(each.startswith(term) for each in own))
            ):
                found[normalized(fact.text)] = FoundFact(fact, has)
        for _, hits in reversed(results):
            found |= {normalized(each.fact.text): each for each in hits}
        return sum(total for total, _ in results) + len(notes), [*found.values()]

    def _containing(self, query: str, limit: int) -> list[Fact]:
        notes = [fact for fact in self._note_facts() if normalized(query) in normalized(fact.text)]
        return _once([*(fact for store in self._stores for fact in store.containing(query, limit)), *notes])[:limit]

    def _note_facts(self) -> list[Fact]:
        """The notes, the last first."""
        return [*self._notes.facts()][::-1] if self._notes else []


def rank(found: Sequence[FoundFact], total: int, near: Mapping[str, float], now: datetime) -> list[Fact]:
    """The facts, best first; `total` are those that were searched, `near` how near in meaning some are, by id.

    The score is relevance x (0.5 + weight) x freshness. Relevance is the share of the query's terms that a fact has,
    rare terms counting more; where meaning is known, the mean of that and of its nearness.
    """
    having = Counter(term for each in found for term in each.terms)
    rarity = {term: math.log(1 + (total - count + 0.5) / (count + 0.5)) for term, count in having.items()}
    whole = sum(rarity.values())

    def score(each: FoundFact) -> tuple[float, float]:
        fact = each.fact
        relevance = sum(rarity[term] for term in each.terms) / whole if whole else 0.0
        if near:
            relevance = (relevance + max(near.get(fact.id, 0.0), 0.0)) / 2
        days = max((now - fact.at).total_seconds() / 86_400, 0.0) if fact.at else math.inf
        freshness = 1 - _FRESHNESS + _FRESHNESS * 0.5 ** (days / HALF_LIFE_DAYS)
        return relevance * (0.5 + fact.weight) * freshness, fact.at.timestamp() if fact.at else 0.0

    return [each.fact for each in sorted(found, key=score, reverse=True)]


def _once(facts: Iterable[Fact]) -> list[Fact]:
    """Each fact in the first place where it is kept."""
    found: dict[str, Fact] = {}
    for fact in facts:
        found.setdefault(normalized(fact.text), fact)
    return [*found.values()]
