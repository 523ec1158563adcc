"""The table with the sums of what all machines have spent."""

from collections.abc import Mapping, Sequence

from denizen.sessions.key import bounded
from denizen.sessions.tables import SharedTables

_READ_SPEND = "SELECT name, usd FROM spend WHERE name = ANY(%(names)s)"
_ADD_SPEND = """
INSERT INTO spend SELECT * FROM unnest(%(names)s::text[], %(usd)s::double precision[])
ON CONFLICT (name) DO UPDATE SET usd = spend.usd + excluded.usd, at = now()
"""
_FORGET_SPEND = """
DELETE FROM spend WHERE name IN (
    SELECT name FROM spend WHERE at < now() - %(days)s * interval '1 day' LIMIT %(limit)s FOR UPDATE SKIP LOCKED
) RETURNING 1
"""


class SpendTable:
    """The `Sums` of all machines. An addition may count twice if the connection breaks."""

    is_remote = True

    def __init__(self, tables: SharedTables) -> None:
        self._tables = tables

    def read(self, names: Sequence[str]) -> Mapping[str, float]:
        found = dict(self._tables.fetch_now(_READ_SPEND, names=[*map(bounded, names)]))
        return {name: found.get(bounded(name), 0.0) for name in names}

    def add(self, sums: Mapping[str, float]) -> None:
        names = sorted(sums)  # in one order, or two processes could wait for each other
        self._tables.fetch_now(_ADD_SPEND, names=[*map(bounded, names)], usd=[sums[name] for name in names])

    def forget(self, days: float, limit: int) -> int:
        return len(self._tables.fetch_now(_FORGET_SPEND, days=days, limit=limit))

    def close(self) -> None:
        """The connections are the sessions', too."""
