"""The search index in PostgreSQL, for the sessions of that database."""

from collections.abc import Sequence
from typing import Any, LiteralString

import msgspec

from denizen.sessions.codec import decode_entries
from denizen.sessions.search_index import (
    FoundSession,
    IndexProgress,
    UsageBy,
    UsageRow,
    found_session,
    read_entries,
    searched_terms,
)
from denizen.sessions.tables import SharedTables

_OUTDATED = """
SELECT id, coalesce(seq, 0), coalesce(began, 0), coalesce(last, 0)
FROM sessions LEFT JOIN searched ON session = id WHERE entries > coalesce(seq, 0)
"""
_LINES = "SELECT seq, line FROM entries WHERE session = %(session)s AND seq > %(after)s ORDER BY seq"
# Other processes may index the same entries, or remove the session, at the same time.
_INSERT = """
WITH kept AS (
    SELECT id FROM sessions WHERE id = %(session)s FOR KEY SHARE
), found AS (
    INSERT INTO said SELECT kept.id, entry, role, at, text, array_to_tsvector(string_to_array(terms, ' '))
    FROM kept, unnest(
        %(entries)s::text[], %(roles)s::text[], %(times)s::float8[], %(texts)s::text[], %(terms)s::text[]
    ) AS new (entry, role, at, text, terms)
    ON CONFLICT DO NOTHING
), counted AS (
    INSERT INTO spent SELECT kept.id, new.* FROM kept, json_to_recordset(%(spent)s) AS new (
        entry text, at float8, model text, calls bigint, retries bigint, errors bigint, input bigint, output bigint,
        cache_read bigint, cache_write bigint, cost_usd float8, seconds float8
    )
    ON CONFLICT DO NOTHING
)
INSERT INTO searched SELECT id, %(seq)s, %(began)s, %(last)s FROM kept
ON CONFLICT (session) DO UPDATE SET seq = excluded.seq, began = excluded.began, last = excluded.last
WHERE searched.seq < excluded.seq
"""
_FIND = """
SELECT key, coalesce((SELECT text FROM said AS first WHERE first.session = found.session AND role = 'user'
    ORDER BY at LIMIT 1), ''), entry, role, at, text, hits
FROM (SELECT DISTINCT ON (session) *, count(*) OVER (PARTITION BY session) AS hits
      FROM said WHERE terms @@ %(query)s::tsquery ORDER BY session, at DESC) AS found
JOIN sessions ON id = session ORDER BY at DESC LIMIT %(limit)s
"""
_USAGE = """
SELECT to_char(to_timestamp(at + %(offset)s) AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, CASE %(by)s
    WHEN 'model' THEN model WHEN 'session' THEN key WHEN 'profile' THEN info->>'profile'
    ELSE split_part(key, ':', 4) END AS name,
    sum(calls)::bigint, sum(retries)::bigint, sum(errors)::bigint, sum(input)::bigint, sum(output)::bigint,
    sum(cache_read)::bigint, sum(cache_write)::bigint, sum(cost_usd), sum(seconds)
FROM spent JOIN sessions ON id = session WHERE at >= %(since)s GROUP BY day, name ORDER BY day, name
"""


class SearchTable:
    """The `SearchIndex` of the sessions in a database. Every query first indexes new entries."""

    def __init__(self, tables: SharedTables) -> None:
        self._tables = tables

    def find(self, words: str, limit: int) -> Sequence[FoundSession]:
        query = " & ".join(f"'{term}'{':*' if is_prefix else ''}" for term, is_prefix in searched_terms(words))
        rows = self._query(_FIND, query=query, limit=limit) if query else ()
        return [found_session(key, first, said, hits, words) for key, first, *said, hits in rows]

    def usage(self, since: float, utc_offset: float, by: UsageBy) -> Sequence[UsageRow]:
        return [UsageRow(*row) for row in self._query(_USAGE, since=since, offset=utc_offset, by=by)]

    def _query(self, statement: LiteralString, **values: object) -> Sequence[Any]:
        for session, after, *progress in self._tables.fetch_now(_OUTDATED):
            self._index(session, after, IndexProgress(*progress))
        return self._tables.fetch_now(statement, **values)

    def _index(self, session: int, after: int, progress: IndexProgress) -> None:
        lines = self._tables.fetch_now(_LINES, session=session, after=after)
        if not lines:
            return
        said, spent, progress = read_entries(decode_entries(line for _, line in lines), progress)
        self._tables.fetch_now(
            _INSERT,
            session=session,
            seq=lines[-1][0],
            began=progress.began,
            last=progress.last,
            entries=[each.entry for each in said],
            roles=[each.role for each in said],
            times=[each.at for each in said],
            texts=[each.text for each in said],
            terms=[each.terms for each in said],
            spent=msgspec.json.encode([each._asdict() for each in spent]).decode(),
        )
