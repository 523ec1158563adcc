"""The latest version of a package, as its registry says."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from denizen.tools.packages.fetch import Fetch
from denizen.tools.packages.graph import Ecosystem, table, text
from denizen.tools.packages.versions import is_prerelease, version_key


async def latest(fetch: Fetch, ecosystem: Ecosystem, name: str) -> str:
    """The latest release; empty for a package that the registry doesn't know. Raises Unreachable."""
    return await _ASK[ecosystem](fetch, name)


async def _pypi(fetch: Fetch, name: str) -> str:
    return text(table(await fetch.json(f"pypi/{quote(name, safe='')}/json"), "info"))


async def _npm(fetch: Fetch, name: str) -> str:
    return text(await fetch.json(f"{quote(name, safe='@')}/latest"))


async def _crates(fetch: Fetch, name: str) -> str:
    """From the sparse index: a line of JSON for each version."""
    index = name.lower()
    folder = f"{len(index)}" if len(index) < 3 else f"3/{index[0]}" if len(index) == 3 else f"{index[:2]}/{index[2:4]}"
    answer = await fetch.text(f"{quote(folder)}/{quote(index, safe='')}") or b""
    lines = [table(msgspec.json.decode(line)) for line in answer.splitlines() if line.strip()]
    versions = [text(line.get("vers")) for line in lines if not line.get("yanked")]
    releases = [version for version in versions if not is_prerelease(version)]
    return max(releases or versions, key=version_key, default="")


async def _go(fetch: Fetch, name: str) -> str:
    """From the module proxy, where capital letters are written as `!` and a small one."""
    escaped = re.sub("[A-Z]", lambda capital: f"!{capital[0].lower()}", name)
    return text(table(await fetch.json(f"{quote(escaped, safe='/!')}/@latest")).get("Version"))


_ASK: Final[Mapping[Ecosystem, Callable[[Fetch, str], Awaitable[str]]]] = {
    "PyPI": _pypi,
    "npm": _npm,
    "crates.io": _crates,
    "Go": _go,
}
