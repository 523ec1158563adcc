"""Facts, each kept once, found by its terms: the same in an SQLite file and in PostgreSQL."""

import math
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import LiteralString, Protocol

import msgspec
from msgspec.structs import replace

from denizen.ports import Fact
from denizen.runtime.clock import Clock
from denizen.text.terms import normalized, storable

MAX_FOUND = 500
"""Facts of a table that one search weighs against each other: those with most of its terms."""

Vector = tuple[float, ...]
FactRow = tuple[int, str, str, str, float, str, float, int]
"""A fact's number, text in the form in which it is compared, text, context, weight, source, time (seconds) and
whether it is untrusted."""


class FactTable(Protocol):
    """Where facts are. Each operation is whole and durable when it returns. Raises DenizenError."""

    def select(self, where: LiteralString, *values: object, limit: int) -> list[FactRow]:
        """The facts for which an SQL condition holds, with `?` for its values: the latest first (-1: all)."""

    def keep(self, fact: Fact, at: datetime) -> bool:
        """Keep a fact that was said `at` that time, as `FactStore.add` does; whether it is new."""

    def remove(self, key: str) -> bool:
        """Forget the fact that is compared by this text; whether it was known."""

    def with_terms(self, terms: Sequence[str]) -> tuple[int, list[tuple[FactRow, frozenset[str]]]]:
        """The number of facts, and at most `MAX_FOUND` with any of the terms, each with its terms."""

    def put_vectors(self, model: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """Keep what a model makes of facts, by their numbers."""

    def vectors(self, model: str, limit: int) -> list[tuple[int, bytes]]:
        """What a model makes of the latest facts, by their numbers."""


class FoundFact(msgspec.Struct, frozen=True):
    """A fact, and those of the terms that were looked for that it has."""

    fact: Fact
    terms: frozenset[str]


class FactStore:
    """The facts of one table; their ids begin with `prefix`. Raises DenizenError when the table can't be used."""

    def __init__(self, table: FactTable, prefix: str, clock: Clock) -> None:
        self._table = table
        self._prefix = prefix
        self._clock = clock

    def add(
        self, text: str, *, context: str = "", weight: float = 0.5, source: str = "", untrusted: bool = False
    ) -> bool:
        """Keep a fact, synced to disk; whether it is new. One that is there already becomes the latest, and weightier.

        The same in other cases or with other white space is the same. What was `untrusted` once stays so.
        """
        return self.keep(Fact(text, context=context, weight=weight, source=source, untrusted=untrusted))

    def keep(self, fact: Fact) -> bool:
        """As `add`, a fact that may have been said earlier."""
        text, context, source = storable(fact.text), storable(fact.context), storable(fact.source)
        return self._table.keep(replace(fact, text=text, context=context, source=source), fact.at or self._clock.now())

    def remove(self, text: str) -> bool:
        """Forget a fact; whether it was known."""
        return self._table.remove(normalized(text))

    def by_id(self, fact_id: str) -> Fact | None:
        """The fact of that id."""
        number = fact_id.removeprefix(self._prefix)
        if number == fact_id or not (number.isascii() and number.isdigit() and len(number) < 19):
            return None
        return next(iter(self._select("id = ?", int(number), limit=1)), None)

    def by_text(self, text: str) -> Fact | None:
        """The fact of that text."""
        return next(iter(self._select("key = ?", normalized(text), limit=1)), None)

    def latest(self, limit: int = -1) -> list[Fact]:
        """The facts that were said last, the latest first; all of them unless limited."""
        return self._select("true", limit=limit)

    def with_terms(self, terms: Sequence[str]) -> tuple[int, list[FoundFact]]:
        """The number of facts, and those with any of the terms or with words that begin with one."""
        total, found = self._table.with_terms(terms)
        return total, [FoundFact(self._fact(row), has) for row, has in found]

    def containing(self, text: str, limit: int) -> list[Fact]:
        """The facts that contain the text verbatim, the latest first."""
        return self._select("replace(key, ?, '') <> key", normalized(text), limit=limit)

    def without_vector(self, model: str, limit: int) -> list[Fact]:
        """The latest facts that a model hasn't seen yet."""
        return self._select("id NOT IN (SELECT fact FROM vectors WHERE model = ?)", model, limit=limit)

    def put_vectors(self, model: str, vectors: Sequence[tuple[Fact, Vector]]) -> None:
        """Keep what the model makes of facts: vectors of length 1."""
        if vectors:
            self._table.put_vectors(
                model,
                [
                    (int(fact.id.removeprefix(self._prefix)), struct.pack(f"{len(vector)}f", *vector))
                    for fact, vector in vectors
                ],
            )

    def similarities(self, model: str, vector: Vector, limit: int) -> dict[str, float]:
        """The cosines between a vector of a model and those of the latest facts that it embedded, by fact id."""
        size = struct.Struct(f"{len(vector)}f")
        return {
            f"{self._prefix}{number}": 1 - math.dist(vector, size.unpack(data)) ** 2 / 2
            for number, data in self._table.vectors(model, limit)
            if len(data) == size.size
        }

    def _select(self, where: LiteralString, *values: object, limit: int) -> list[Fact]:
        return [self._fact(row) for row in self._table.select(where, *values, limit=limit)]

    def _fact(self, row: FactRow) -> Fact:
        number, _, text, context, weight, source, at, untrusted = row
        when = datetime.fromtimestamp(at, UTC)
        return Fact(text, f"{self._prefix}{number}", context, weight, source, when, bool(untrusted))
