"""Which facts are near a query in meaning, where an embeddings server says so."""

import asyncio
import logging
from collections.abc import Sequence

from denizen.clock import Clock
from denizen.errors import DenizenError
from denizen.memory.embeddings import BATCH, Embeddings
from denizen.memory.store import FactStore
from denizen.ports import Fact

MOST_COMPARED = 5_000
"""Facts of a file whose vectors are compared with a query's, the latest."""
REST = 300.0
"""Seconds until a server that failed is asked again."""
_MOST_CHARS = 8_000
"""Characters of a query that are sent."""

_log = logging.getLogger(__name__)


class Meaning:
    """Compares facts with queries; the server sees each fact once, with the next query after it was kept."""

    def __init__(self, embeddings: Embeddings, clock: Clock) -> None:
        self._embeddings = embeddings
        self._clock = clock
        self._rests_until = 0.0

    async def alike(self, query: str, stores: Sequence[FactStore]) -> dict[str, float]:
        """How near facts are (-1 to 1), by their ids; none while the server fails, of which a warning tells once.

        Raises DenizenError when a store can't be used.
        """
        if self._clock.monotonic() < self._rests_until:
            return {}
        new = await asyncio.to_thread(self._unseen, stores)
        try:
            asked, *vectors = await self._embeddings.vectors([query[:_MOST_CHARS], *(fact.text for _, fact in new)])
        except DenizenError as error:
            if not self._rests_until:
                _log.warning("%s Facts are found by their words alone.", error)
            self._rests_until = self._clock.monotonic() + REST
            return {}
        seen = [(store, fact, vector) for (store, fact), vector in zip(new, vectors, strict=True)]

        def compare() -> dict[str, float]:
            model, near = self._embeddings.model, dict[str, float]()
            for store in stores:
                store.put_vectors(model, [(fact, vector) for owner, fact, vector in seen if owner is store])
                near |= store.likeness(model, asked, MOST_COMPARED)
            return near

        return await asyncio.to_thread(compare)

    def _unseen(self, stores: Sequence[FactStore]) -> list[tuple[FactStore, Fact]]:
        """Facts that go along with the query."""
        found = [(store, fact) for store in stores for fact in store.without_vector(self._embeddings.model, BATCH)]
        return found[: BATCH - 1]
