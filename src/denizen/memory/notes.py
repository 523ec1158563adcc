"""MEMORY.md and the daily notes: the same in plain files and in PostgreSQL."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import PurePosixPath
from typing import Protocol

from denizen.config.pattern import pattern
from denizen.errors import ToolRefused
from denizen.ports import UNTRUSTED, Fact
from denizen.runtime.clock import Clock

LONG_TERM = "MEMORY.md"
_MAX_FACT = 2000
"""Characters of one fact."""
MAX_RECENT = 20_000
"""Characters of all recent daily notes together."""
MAX_READ = 1_000_000
"""Bytes or characters of one note that are searched, the last ones."""
_MAX_DAYS = 400
"""Daily notes that are searched, the latest."""
_FACT = pattern(r"(?:[-*+] +)?(?:(?P<day>\d{4}-\d\d-\d\d): *)?(?P<untrusted>\[untrusted\] *)?(?P<text>.*)")
_DAY = pattern(r"(\d{4})(\d\d)(\d\d)\.md")


class NoteTexts(Protocol):
    """Where notes are, each by its path in the workspace. What changes is whole and durable when an operation returns.

    Raises ToolRefused or DenizenError when they can't be used.
    """

    in_workspace: bool
    """Whether they are the workspace's own files, where the prompt's builder finds MEMORY.md by itself."""

    def daily(self) -> Sequence[str]:
        """The names of the daily notes."""

    def read(self, names: Sequence[str]) -> Sequence[str]:
        """The last `MAX_READ` of each of these notes, empty for those that don't exist."""

    def append(self, name: str, addition: Callable[[str], str]) -> bool:
        """Add to a note what `addition` makes of its text; whether that is anything. Nobody changes it meanwhile."""

    def remove_lines(self, name: str, says: Callable[[str], bool]) -> bool:
        """Take the lines out of a note of which that is so; whether there was one. Nobody changes it meanwhile."""


class Notes:
    """Facts in `MEMORY.md` of the agent's own workspace, a dated line each, and in `memory/YYYYMM/YYYYMMDD.md`.

    The day is that of the user's time zone (None: the machine's).
    """

    def __init__(self, texts: NoteTexts, clock: Clock, zone: tzinfo | None = UTC) -> None:
        self._texts = texts
        self._clock = clock
        self._zone = zone

    def remember(self, text: str, *, untrusted: bool = False) -> str:
        """Keep a fact as a line of MEMORY.md, synced to disk; one that is there already isn't repeated.

        What is `untrusted` has that word before it. Raises ToolRefused when it is empty or too long, or the disk
        refuses: then nothing was kept.
        """
        fact = plain_fact(text)
        line = f"{self._now():%Y-%m-%d}: {_mark(untrusted)}{fact}"
        added = self._texts.append(LONG_TERM, lambda kept: "" if _says(kept, fact) else _line_after(kept, line))
        return f"Remembered in {LONG_TERM}." if added else f"{LONG_TERM} says so already."

    def append_today(self, text: str, *, untrusted: bool = False) -> str:
        """Add a line to today's note, with the time, synced to disk; says where it is.

        What is `untrusted` has that word before it. Raises ToolRefused like `remember`.
        """
        now = self._now()
        name = _note_of(now)
        line = f"{_mark(untrusted)}{now:%H:%M} {plain_fact(text)}"
        self._texts.append(name, lambda kept: _line_after(kept, line))
        return f"Noted in {name}."

    def recent(self, days: int) -> list[tuple[str, str]]:
        """The notes of the last days, today's last: their paths in the workspace, and their texts.

        Of all together the last 20,000 characters. Raises ToolRefused when a file can't be read.
        """
        found: list[tuple[str, str]] = []
        left, today = MAX_RECENT, self._now()
        names = [_note_of(today - timedelta(days=ago)) for ago in range(days)]
        for name, text in zip(names, map(str.strip, self._texts.read(names)), strict=True):
            if text and left > 0:
                # whole lines: a mark is at the beginning
                end = text[-left:].partition("\n")[2] if len(text) > left else ""
                shown = text if len(text) <= left else f"[cut: only the end is shown]\n{end}"
                found.insert(0, (name, shown))
                left -= len(text)
        return found

    def for_prompt(self, days: int) -> list[tuple[str, str]]:
        """The `recent` ones, and before them MEMORY.md where the workspace has no such file of its own."""
        long_term = [] if self._texts.in_workspace else [LONG_TERM]
        return [*zip(long_term, self._texts.read(long_term), strict=True), *self.recent(days)]

    def forget(self, text: str) -> bool:
        """Take the lines of MEMORY.md that say this out of it; whether there was one.

        Raises ToolRefused if the disk refuses; the file is then unchanged.
        """
        return self._texts.remove_lines(LONG_TERM, lambda line: _says(line, text))

    def facts(self) -> Iterator[Fact]:
        """All that is kept, older files first. Raises ToolRefused when a file can't be read."""
        paths = [path for path in map(PurePosixPath, self._texts.daily()) if _DAY.fullmatch(path.name)]
        latest = sorted(paths, key=lambda path: path.name)[-_MAX_DAYS:]
        *days, long_term = self._texts.read([*map(str, latest), LONG_TERM])
        for path, text in zip(latest, days, strict=True):
            yield from _facts_in(text, _DAY.sub(r"\1-\2-\3", path.name), path.name)
        yield from _facts_in(long_term)

    def _now(self) -> datetime:
        return self._clock.now().astimezone(self._zone)


def one_line(text: str) -> str:
    """The text as one line of printable signs."""
    return " ".join("".join(sign for sign in " ".join(text.split()) if sign.isprintable()).split())


def plain_fact(text: str) -> str:
    """The stored form of a fact: one line. Raises ToolRefused if it is empty or too long."""
    fact = one_line(text).removeprefix("- ")
    if not fact or len(fact) > _MAX_FACT:
        wrong = f"longer than {_MAX_FACT} characters: keep what matters of it" if fact else "empty"
        raise ToolRefused(f"Nothing was remembered: the text is {wrong}")
    return fact


def _note_of(day: datetime) -> str:
    return f"memory/{day:%Y%m}/{day:%Y%m%d}.md"


def _line_after(text: str, line: str) -> str:
    return f"- {line}\n" if text.endswith("\n") or not text else f"\n- {line}\n"


def _mark(untrusted: bool) -> str:
    return f"{UNTRUSTED} " if untrusted else ""


def _says(text: str, fact: str) -> bool:
    return any(known.text.casefold() == fact.casefold() for known in _facts_in(text))


def _facts_in(text: str, day: str = "", file: str = LONG_TERM) -> Iterator[Fact]:
    """The lines that say something; a line's own day counts, else the file's."""
    for line in text.splitlines():
        match = _FACT.fullmatch(line.strip())
        if match and match["text"] and not line.lstrip().startswith("#"):
            at = None
            with suppress(ValueError):  # a day that the calendar hasn't, written by hand
                at = datetime.fromisoformat(f"{match['day'] or day}T00:00+00:00")
            yield Fact(match["text"], source=file, at=at, untrusted=bool(match["untrusted"]))
