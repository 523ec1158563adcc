"""MEMORY.md and the daily notes: plain files that the user reads and edits, too."""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

from denizen.clock import Clock
from denizen.config.files import write_private
from denizen.errors import ConfigError, ToolRefused
from denizen.ports import UNTRUSTED, Fact

_MAX_FACT = 2000
"""Characters of one fact."""
MAX_RECENT = 20_000
"""Characters of all recent daily notes together."""
_MAX_READ = 1_000_000
"""Bytes of one file that are searched, the last ones."""
_MAX_DAYS = 400
"""Daily notes that are searched, the latest."""
_OPEN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # the workspace's own file, not what a link or a pipe leads to
_FACT = re.compile(r"(?:[-*+] +)?(?:(?P<day>\d{4}-\d\d-\d\d): *)?(?P<untrusted>\[untrusted\] *)?(?P<text>.*)")
_DAY = re.compile(r"(\d{4})(\d\d)(\d\d)\.md")


class Notes:
    """Facts in `MEMORY.md` of the agent's own workspace, a dated line each, and in `memory/YYYYMM/YYYYMMDD.md`.

    The day is that of the user's time zone (None: the machine's).
    """

    def __init__(self, workspace: Path, clock: Clock, zone: tzinfo | None = UTC) -> None:
        self._workspace = workspace
        self._path = workspace / "MEMORY.md"
        self._clock = clock
        self._zone = zone

    def remember(self, text: str, *, untrusted: bool = False) -> str:
        """Keep a fact as a line of MEMORY.md, synced to disk; one that is there already isn't repeated.

        What is `untrusted` has that word before it. Raises ToolRefused when it is empty or too long, or the disk
        refuses: then nothing was kept.
        """
        fact = plain_fact(text)
        added = _add_line(self._path, f"{self._now():%Y-%m-%d}: ", fact, untrusted=untrusted, once=True)
        return f"Remembered in {self._path.name}." if added else f"{self._path.name} says so already."

    def append_today(self, text: str, *, untrusted: bool = False) -> str:
        """Add a line to today's note, with the time, synced to disk; says where it is.

        What is `untrusted` has that word before it. Raises ToolRefused like `remember`.
        """
        now = self._now()
        path = self._note_of(now)
        _add_line(path, "", f"{now:%H:%M} {plain_fact(text)}", untrusted=untrusted)
        return f"Noted in {path.relative_to(self._workspace)}."

    def recent(self, days: int) -> list[tuple[str, str]]:
        """The notes of the last days, today's last: their paths in the workspace, and their texts.

        Of all together the last 20,000 characters. Raises ToolRefused when a file can't be read.
        """
        found: list[tuple[str, str]] = []
        left, today = MAX_RECENT, self._now()
        for ago in range(days):
            path = self._note_of(today - timedelta(days=ago))
            text = _text_of(path).strip()
            if text and left > 0:
                shown = text if len(text) <= left else f"[cut: only the end is shown]\n{text[-left:]}"
                found.insert(0, (str(path.relative_to(self._workspace)), shown))
                left -= len(text)
        return found

    def forget(self, text: str) -> bool:
        """Take the lines of MEMORY.md that say this out of it; whether there was one.

        Raises ToolRefused when the disk refuses: then the file is as it was.
        """
        try:
            if not self._path.exists():
                return False
            with _locked(self._path) as descriptor:
                lines = os.pread(descriptor, os.fstat(descriptor).st_size, 0).splitlines(keepends=True)
                kept = [line for line in lines if not _says(line.decode(errors="replace"), text)]
                if len(kept) < len(lines):
                    write_private(self._path, b"".join(kept))
        except (OSError, ConfigError) as error:
            raise ToolRefused(f"{self._path} can't be changed: {error}") from error
        return len(kept) < len(lines)

    def _now(self) -> datetime:
        return self._clock.now().astimezone(self._zone)

    def _note_of(self, day: datetime) -> Path:
        return self._workspace / "memory" / f"{day:%Y%m}" / f"{day:%Y%m%d}.md"

    def facts(self) -> Iterator[Fact]:
        """All that is kept, older files first. Raises ToolRefused when a file can't be read."""
        days = [path for path in self._workspace.glob("memory/[0-9]*/[0-9]*.md") if _DAY.fullmatch(path.name)]
        for path in sorted(days, key=lambda path: path.name)[-_MAX_DAYS:]:
            yield from _facts_in(_text_of(path), _DAY.sub(r"\1-\2-\3", path.name), path.name)
        yield from _facts_in(_text_of(self._path))


def one_line(text: str) -> str:
    """The text as one line of printable signs."""
    return " ".join("".join(sign for sign in " ".join(text.split()) if sign.isprintable()).split())


def plain_fact(text: str) -> str:
    """A fact as it is kept: one line. Raises ToolRefused where nothing is left, or too much."""
    fact = one_line(text).removeprefix("- ")
    if not fact or len(fact) > _MAX_FACT:
        wrong = f"longer than {_MAX_FACT} characters: keep what matters of it" if fact else "empty"
        raise ToolRefused(f"Nothing was remembered: the text is {wrong}")
    return fact


def _add_line(path: Path, before: str, text: str, *, untrusted: bool, once: bool = False) -> bool:
    """Add a line to a file of notes, synced to disk; with `once`, only where it doesn't say so yet. Whether it did.

    Raises ToolRefused when the disk refuses.
    """
    line = f"- {before}{f'{UNTRUSTED} ' if untrusted else ''}{text}\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(path) as descriptor:
            kept = _read(descriptor)
            if once and _says(kept, text):
                return False
            _append(descriptor, ("" if kept.endswith("\n") or not kept else "\n") + line)
    except OSError as error:
        raise ToolRefused(f"Nothing was remembered: {path} can't be written ({error.strerror})") from error
    return True


@contextmanager
def _locked(path: Path) -> Generator[int]:
    """The open file at `path`, made where it is missing, which no other process of ours changes meanwhile."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _OPEN, 0o600)
        try:
            _require_file(descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            is_still_there = False
            with suppress(FileNotFoundError):
                is_still_there = os.path.samestat(os.fstat(descriptor), path.lstat())
            if is_still_there:  # else an editor put another file in its place
                yield descriptor
                return
        finally:
            os.close(descriptor)


def _require_file(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.EINVAL, "it is not a file")


def _read(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, _MAX_READ, max(size - _MAX_READ, 0)).decode(errors="replace")


def _append(descriptor: int, text: str) -> None:
    """Write the text at the end and sync it; where that fails, none of it stays."""
    size, data = os.fstat(descriptor).st_size, text.encode()
    try:
        if os.write(descriptor, data) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _text_of(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | _OPEN)
        try:
            _require_file(descriptor)
            return _read(descriptor)
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise ToolRefused(f"{path} can't be read: {error.strerror}") from error


def _says(text: str, fact: str) -> bool:
    return any(known.text.casefold() == fact.casefold() for known in _facts_in(text))


def _facts_in(text: str, day: str = "", file: str = "MEMORY.md") -> Iterator[Fact]:
    """The lines that say something; a line's own day counts, else the file's."""
    for line in text.splitlines():
        match = _FACT.fullmatch(line.strip())
        if match and match["text"] and not line.lstrip().startswith("#"):
            at = None
            with suppress(ValueError):  # a day that the calendar hasn't, written by hand
                at = datetime.fromisoformat(f"{match['day'] or day}T00:00+00:00")
            yield Fact(match["text"], source=file, at=at, untrusted=bool(match["untrusted"]))
