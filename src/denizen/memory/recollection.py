"""All that is kept beyond a session: the project's facts, the user's, and the notes."""

import asyncio
import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from denizen.clock import Clock
from denizen.config import Config
from denizen.config.home import places, project_folder
from denizen.errors import ToolRefused
from denizen.memory.embeddings import Embeddings
from denizen.memory.meaning import Meaning
from denizen.memory.notes import Notes, one_line, plain_fact
from denizen.memory.rank import rank
from denizen.memory.store import FactStore, Found
from denizen.memory.words import index_words, key_of, may_go_on, query_words
from denizen.ports import Fact, Scope

MOST_CONTEXT = 200
"""Characters of a fact's context."""


def open_memory(
    config: Config, *, clock: Clock, redact: Callable[[str], str] = str, with_notes: bool = False
) -> "Recollection":
    """The memory of a located configuration: the project's and the user's; `with_notes`: `MEMORY.md`, too.

    No secret that `redact` knows is kept. Raises ConfigError when the settings of the embeddings are wrong.
    """
    home, workspace = places(config)
    own, settings = config.agent.workspace_dir, config.memory.embeddings
    return Recollection(
        project=None if workspace == own else FactStore(project_folder(home, workspace) / "memory.db", "p", clock),
        user=FactStore(home / "memory.db", "u", clock),
        notes=Notes(own, clock) if with_notes else None,
        meaning=Meaning(Embeddings(settings), clock) if settings.base_url else None,
        clock=clock,
        redact=redact,
    )


class Recollection:
    """Facts in one place per scope, found in all of them: by words and, where `meaning` is given, by that.

    Without a `project` all is the user's. With `notes`, each fact is a line there, too.
    """

    def __init__(
        self,
        *,
        project: FactStore | None,
        user: FactStore,
        clock: Clock,
        notes: Notes | None = None,
        meaning: Meaning | None = None,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._project = project
        self._user = user
        self._stores = [project, user] if project else [user]
        self._notes = notes
        self._meaning = meaning
        self._clock = clock
        self._redact = redact

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
        context = one_line(self._redact(context))[:MOST_CONTEXT]
        store = self._project if self._project and scope == "project" else self._user

        def keep() -> str:
            where = "for this project" if store is self._project else "for the user"
            noted = self._notes.remember(fact, untrusted=untrusted) if self._notes else ""
            weighed = min(max(weight, 0.0), 1.0)
            new = store.keep(fact, context=context, weight=weighed, source=source, untrusted=untrusted)
            told = f"Remembered {where}." if new else f"Known {where} already; it counts as said today."
            return f"{told} {noted}".rstrip()

        return await asyncio.to_thread(keep)

    async def recall(self, query: str, limit: int = 10) -> Sequence[Fact]:
        """The facts that fit best, best first; for an empty query the latest."""
        query, limit = self._redact(query).strip(), max(limit, 0)
        if not query:
            return await asyncio.to_thread(self._latest, limit)
        total, found = await asyncio.to_thread(self._with_words, query)
        alike = await self._meaning.alike(query, self._stores) if self._meaning else {}
        found += await asyncio.to_thread(self._nearest, alike, limit, {each.fact.id for each in found})
        if not found:
            return await asyncio.to_thread(self._containing, query, limit)
        return _once(rank(found, total, alike, self._clock.now()))[:limit]

    async def forget(self, what: str) -> str:
        """Forget the fact of that id, that text, or the only one that has all of these words."""

        def forget() -> str:
            fact = self.meant(what.strip())
            gone = [store.remove(fact.text) for store in self._stores]
            if not any([*gone, self._notes and self._notes.forget(fact.text)]):
                raise ToolRefused(
                    f"It stands in the daily note {fact.source}, which is the user's to change: {fact.text}"
                )
            return f"Forgotten: {fact.text}"

        return await asyncio.to_thread(forget)

    def facts(self) -> list[Fact]:
        """All of them, the latest first."""
        return self._latest(-1)

    def meant(self, what: str) -> Fact:
        """The fact of that id, that text, or the only one that has all of these words. Raises ToolRefused."""
        for store in self._stores:
            if fact := store.named(what) or store.saying(what):
                return fact
        words = set(query_words(what))
        fitting = [found.fact for found in self._with_words(what)[1] if words and found.words >= words]
        fitting = [fact for fact in fitting if key_of(fact.text) == key_of(what)] or fitting
        if not fitting:
            raise ToolRefused(f"Nothing is remembered that fits {what!r:.200}.")
        if len(fitting) > 1:
            listed = "\n".join(f"- {fact.id or 'note'}: {fact.text}" for fact in fitting[:10])
            raise ToolRefused(f"{len(fitting)} facts fit; forget one by its id or its whole text:\n{listed}")
        return fitting[0]

    def _latest(self, limit: int) -> list[Fact]:
        facts = [*_once(fact for store in self._stores for fact in store.latest(limit)), *self._noted()]
        facts = sorted(_once(facts), key=lambda fact: fact.at or datetime.min.replace(tzinfo=UTC), reverse=True)
        return facts if limit < 0 else facts[:limit]

    def _with_words(self, query: str) -> tuple[int, list[Found]]:
        """How many facts there are, and those with any of the query's words."""
        words = query_words(query)
        results = [store.with_words(words) for store in self._stores]
        noted = [*self._noted()]
        found = {key_of(each.fact.text): each for each in _having(noted, words)}
        for _, hits in reversed(results):
            found |= {key_of(each.fact.text): each for each in hits}
        return sum(total for total, _ in results) + len(noted), [*found.values()]

    def _nearest(self, alike: Mapping[str, float], limit: int, known: Collection[str]) -> list[Found]:
        """The facts that are nearest in meaning, but for those that are found already."""
        nearest = [each for each in heapq.nlargest(limit, alike, key=alike.__getitem__) if each not in known]
        facts = [fact for store in self._stores for each in nearest if (fact := store.named(each))]
        return [Found(fact, frozenset()) for fact in facts]

    def _containing(self, query: str, limit: int) -> list[Fact]:
        noted = [fact for fact in self._noted() if key_of(query) in key_of(fact.text)]
        return _once([*(fact for store in self._stores for fact in store.containing(query, limit)), *noted])[:limit]

    def _noted(self) -> Iterator[Fact]:
        """The notes, the last first."""
        for note in reversed([*self._notes.facts()] if self._notes else []):
            at = None
            with suppress(ValueError):  # a day that the calendar hasn't, written by hand
                at = datetime.fromisoformat(f"{note.day}T00:00+00:00")
            yield Fact(note.text, source=note.file, at=at, untrusted=note.untrusted)


def _once(facts: Iterable[Fact]) -> list[Fact]:
    """Each fact in the first place where it is kept."""
    found: dict[str, Fact] = {}
    for fact in facts:
        found.setdefault(key_of(fact.text), fact)
    return [*found.values()]


def _having(facts: Sequence[Fact], words: Sequence[str]) -> Iterator[Found]:
    """The notes that have any of the words, or words that begin with one."""
    for fact in facts:
        kept = index_words(f"{fact.text} {fact.at:%Y-%m-%d}" if fact.at else fact.text)
        if has := frozenset(word for word in words if _is_in(word, kept)):
            yield Found(fact, has)


def _is_in(word: str, kept: Sequence[str]) -> bool:
    return word in kept or (may_go_on(word) and any(each.startswith(word) for each in kept))
