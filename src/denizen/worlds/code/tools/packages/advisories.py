"""Security advisories: what they say of a package, and those in OSV's format (https://ossf.github.io/osv-schema/)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from denizen.errors import ToolRefused
from denizen.tools.files.text import printable
from denizen.worlds.code.tools.packages.graph import Ecosystem, Package, parse_version, table, tables, text, words
from denizen.worlds.code.tools.packages.manifests import python_name

MAX_SUMMARY_CHARS = 160
MAX_ID_CHARS = 60  # also of a version
_SEVERITIES = {"CRITICAL": 4, "HIGH": 3, "MODERATE": 2, "MEDIUM": 2, "LOW": 1}

_EVENTS = {"introduced", "fixed", "limit", "last_affected"}

Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Advisory:
    """One advisory: its id and other names, how bad (empty: not rated), what it is about, and which version fixes it.

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
    """Advisories in OSV's format by the packages that they are about; `count` is their number."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.count = 0
        self._about: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            self.count += 1
            for name in dict.fromkeys(map(_name, tables(record.get("affected")))):
                self._about.setdefault(name, []).append(record)

    def concerning(self, ecosystem: Ecosystem, package: Package) -> list[Advisory]:
        """Those that concern a package at its version; withdrawn ones don't."""
        found: list[Advisory] = []
        for record in self._about.get((ecosystem, package.name), ()):
            affected = [each for each in tables(record.get("affected")) if _name(each) == (ecosystem, package.name)]
            if "withdrawn" not in record and any(_concerns(each, ecosystem, package.version) for each in affected):
                found.append(_read(record, affected, ecosystem, package))
        return _worst_first(found)


def _read(record: Record, affected: Sequence[Record], ecosystem: Ecosystem, package: Package) -> Advisory:
    """A record about a package as it may be shown; `affected` are its parts about that package.

    Of the versions that fix it, the first after the package's is named.
    """
    rated = [table(record, "database_specific"), *(table(each, "ecosystem_specific") for each in affected)]
    severity = next((text(each["severity"]).upper() for each in rated if each.get("severity")), "")
    summary = text(record.get("summary")) or text(record.get("details"))
    now = parse_version(ecosystem, package.version)
    later: list[tuple[Any, str]] = []
    for event in (event for each in affected for events in _ranges(each) for event in events):
        fix = text(event.get("fixed"))
        at = parse_version(ecosystem, fix)
        if at is not None and now is not None and at > now:
            later.append((at, fix))
    return Advisory(
        id=printable(text(record.get("id")))[:MAX_ID_CHARS],
        aliases=[printable(alias)[:MAX_ID_CHARS] for alias in words(record.get("aliases"))],
        severity=severity if severity in _SEVERITIES else "",
        summary=printable(" ".join(summary.split()))[:MAX_SUMMARY_CHARS],
        fixed=printable(min(later, key=lambda fix: fix[0], default=(None, ""))[1])[:MAX_ID_CHARS],
    )


def _worst_first(found: Iterable[Advisory]) -> list[Advisory]:
    """The advisories, the worst first; of several names of one, the one that is rated."""
    seen: set[str] = set()
    kept: list[Advisory] = []
    for each in sorted(found, key=lambda each: (-_SEVERITIES.get(each.severity, 0), each.id)):
        if not seen.intersection([each.id, *each.aliases]):
            kept.append(each)
        seen.update([each.id, *each.aliases])
    return kept


def _records(data: Any) -> list[Record]:
    if isinstance(data, dict):
        return tables(data["vulns"]) if "vulns" in data else [data]
    return [each for one in data for each in _records(one)] if isinstance(data, list) else []


def _name(affected: Record) -> tuple[str, str]:
    """The ecosystem and name that an entry is about; more may come after the ecosystem, as in `PyPI:…`."""
    package = table(affected, "package")
    ecosystem, name = text(package.get("ecosystem")).partition(":")[0], text(package.get("name"))
    return ecosystem, python_name(name) if ecosystem == "PyPI" else name


def _ranges(affected: Record) -> list[list[Record]]:
    """The events of each range of versions."""
    return [tables(each.get("events")) for each in tables(affected.get("ranges")) if each.get("type") != "GIT"]


def _concerns(affected: Record, ecosystem: Ecosystem, version: str) -> bool:
    """Whether a version is named, or inside a range: the last event up to it is that it was introduced."""
    if {version, version.removeprefix("v")}.intersection(words(affected.get("versions"))):
        return True
    now = parse_version(ecosystem, version)
    for events in _ranges(affected) if now is not None else ():
        passed: list[tuple[bool, Any, bool]] = []  # 0 comes first; at one version what ends comes before what begins
        for kind, value in (next(iter(event.items()), ("", "")) for event in events):
            at = parse_version(ecosystem, text(value))
            if kind not in _EVENTS or at is None:
                continue
            if value == "0" or at < now or (at == now and kind != "last_affected"):
                passed.append((value != "0", at, kind == "introduced"))
        if passed and max(passed)[2]:
            return True
    return False
