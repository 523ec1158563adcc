"""Advisories in OSV's format: which versions they concern, and what they say (https://ossf.github.io/osv-schema/)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from denizen.errors import ToolRefused
from denizen.tools.files.text import printable
from denizen.tools.packages.graph import Ecosystem, Package, table, tables, text, words
from denizen.tools.packages.manifests import python_name
from denizen.tools.packages.versions import version_key

_RATES = {"CRITICAL": 4, "HIGH": 3, "MODERATE": 2, "MEDIUM": 2, "LOW": 1}
LONGEST = 160
"""Characters of a summary that are shown."""

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Advisory:
    """One advisory: its id and other names, how bad (empty: not rated), what it is about, and which version mends it.

    Its words are others': data, not instructions.
    """

    id: str
    aliases: Sequence[str]
    severity: str
    summary: str
    fixed: str


def read_advisories(path: Path) -> "Advisories":
    """The advisories of a file, or of the .json files of a folder: one, a list of them, or `vulns` of an OSV answer.

    Raises ToolRefused for what can't be read.
    """
    try:
        files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        return Advisories(each for file in files for each in _records(msgspec.json.decode(file.read_bytes())))
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise ToolRefused(
            f"packages.advisories: {path} can't be read as advisories in OSV's format ({error}); the user can fix it"
        ) from error


class Advisories:
    """Advisories by the packages that they are about."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.count = 0
        self._about: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            self.count += 1
            for name in dict.fromkeys(map(_name, tables(record.get("affected")))):
                self._about.setdefault(name, []).append(record)

    def concerning(self, ecosystem: Ecosystem, package: Package) -> list[Record]:
        """Those that concern a package at its version; withdrawn ones don't."""
        return [
            record
            for record in self._about.get((ecosystem, package.name), ())
            if "withdrawn" not in record
            and any(_concerns(affected, package.version) for affected in _affected(record, ecosystem, package.name))
        ]


def told(records: Iterable[Record], ecosystem: Ecosystem, package: Package) -> list[Advisory]:
    """Advisories about a package in words, the worst first; of several names of one, the one that is rated."""
    found = [_told(record, _affected(record, ecosystem, package.name), package.version) for record in records]
    found.sort(key=lambda each: (-_RATES.get(each.severity, 0), each.id))
    seen: set[str] = set()
    kept: list[Advisory] = []
    for each in found:
        if not seen.intersection([each.id, *each.aliases]):
            kept.append(each)
        seen.update([each.id, *each.aliases])
    return kept


def _told(record: Record, affected: Sequence[Record], version: str) -> Advisory:
    fixes = [text(event.get("fixed")) for each in affected for event in _events(each)]
    later = [fix for fix in fixes if fix and version_key(fix) > version_key(version)]
    rated = [table(record, "database_specific"), *(table(each, "ecosystem_specific") for each in affected)]
    severity = next((text(each.get("severity")) for each in rated if each.get("severity")), "").upper()
    words_of = text(record.get("summary")) or text(record.get("details"))
    return Advisory(
        id=printable(text(record.get("id")))[:60],
        aliases=[printable(alias)[:60] for alias in words(record.get("aliases"))],
        severity=severity if severity in _RATES else "",
        summary=printable(" ".join(words_of.split()))[:LONGEST],
        fixed=printable(min(later, key=version_key, default=""))[:60],
    )


def _records(data: Any) -> list[Record]:
    if isinstance(data, dict):
        return tables(data["vulns"]) if "vulns" in data else [data]
    return [each for one in data for each in _records(one)] if isinstance(data, list) else []


def _affected(record: Record, ecosystem: Ecosystem, name: str) -> list[Record]:
    """What an advisory says of a package."""
    return [each for each in tables(record.get("affected")) if _name(each) == (ecosystem, name)]


def _name(affected: Record) -> tuple[str, str]:
    """The ecosystem and name that an entry is about; an ecosystem may stand there with more behind it, `PyPI:…`."""
    package = table(affected, "package")
    ecosystem, name = text(package.get("ecosystem")).partition(":")[0], text(package.get("name"))
    return ecosystem, python_name(name) if ecosystem == "PyPI" else name


def _concerns(affected: Record, version: str) -> bool:
    if version in words(affected.get("versions")) or version.removeprefix("v") in words(affected.get("versions")):
        return True
    return any(_holds(tables(each.get("events")), version) for each in _ranges(affected))


def _holds(events: Sequence[Record], version: str) -> bool:
    """Whether a version is inside a range: introduced, and neither fixed nor past the last that is affected."""
    at = version_key(version)
    inside = False
    for event in sorted(events, key=_at):
        kind, value = next(iter(event.items()), ("", ""))
        key = version_key(text(value))
        if kind == "introduced" and (value == "0" or key <= at):
            inside = True
        elif (kind in {"fixed", "limit"} and key <= at) or (kind == "last_affected" and key < at):
            inside = False
    return inside


def _at(event: Record) -> tuple[Any, bool]:
    """Where an event stands among the others; at one version what ends comes before what begins."""
    kind, value = next(iter(event.items()), ("", ""))
    return (version_key("") if value == "0" else version_key(text(value))), kind == "introduced"


def _ranges(affected: Record) -> list[dict[str, Any]]:
    return [each for each in tables(affected.get("ranges")) if each.get("type") != "GIT"]


def _events(affected: Record) -> list[dict[str, Any]]:
    return [event for each in _ranges(affected) for event in tables(each.get("events"))]
