"""Asking an OSV server which advisories concern packages (https://google.github.io/osv.dev/api/)."""

import asyncio
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from denizen.tools.packages.fetch import Fetch, Unreachable
from denizen.tools.packages.graph import Ecosystem, Package, table, tables, text

BATCH = 1000
"""Packages in one question, which is the server's limit."""
MOST = 200
"""Advisories that are read in full."""
_PAGES = 5

Asked = tuple[Ecosystem, Package]


async def ask_osv(fetch: Fetch, asked: Sequence[Asked]) -> list[list[dict[str, Any]]]:
    """For each package, the advisories that concern it. Raises Unreachable."""
    ids: list[list[str]] = [[] for _ in asked]
    for start in range(0, len(asked), BATCH):
        await _batch(fetch, asked, range(start, min(start + BATCH, len(asked))), ids)
    wanted = list(dict.fromkeys(one for some in ids for one in some))[:MOST]
    records = await asyncio.gather(*(_record(fetch, one) for one in wanted))
    known = dict(zip(wanted, records, strict=True))
    return [[known.get(one, {"id": one}) for one in some] for some in ids]


async def _batch(fetch: Fetch, asked: Sequence[Asked], places: Sequence[int], ids: list[list[str]]) -> None:
    """Fill in the ids of one question, and of its further pages."""
    tokens = dict.fromkeys(places, "")
    for _ in range(_PAGES):
        answer = await fetch.json(
            "v1/querybatch", {"queries": [_query(asked[at], token) for at, token in tokens.items()]}
        )
        results = tables(table(answer).get("results"))
        if len(results) != len(tokens):
            raise Unreachable(f"the advisory server answered {len(results)} of {len(tokens)} questions")
        for at, result in zip(tokens, results, strict=True):
            ids[at] += [text(each.get("id")) for each in tables(result.get("vulns"))]
        pages = {at: text(result.get("next_page_token")) for at, result in zip(tokens, results, strict=True)}
        tokens = {at: token for at, token in pages.items() if token}
        if not tokens:
            return


async def _record(fetch: Fetch, one: str) -> dict[str, Any]:
    return table(await fetch.json(f"v1/vulns/{quote(one, safe='')}")) or {"id": one}


def _query(asked: Asked, token: str) -> dict[str, Any]:
    ecosystem, package = asked
    version = package.version.removeprefix("v") if ecosystem == "Go" else package.version
    query = {"package": {"name": package.name, "ecosystem": ecosystem}, "version": version}
    return query | ({"page_token": token} if token else {})
