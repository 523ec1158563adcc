"""MEMORY.md and the daily notes: plain files that the user reads and edits, too."""

import errno
import fcntl
import os
import re
import stat
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from denizen.clock import Clock
from denizen.config.files import write_private
from denizen.errors import ConfigError, ToolRefused
from denizen.ports import UNTRUSTED

_MOST_FACT = 2000
"""Characters of one fact."""
_MOST_READ = 1_000_000
"""Bytes of one file that are searched, the last ones."""
_MOST_DAYS = 400
"""Daily notes that are searched, the latest."""
_OPEN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # the workspace's own file, not what a link or a pipe leads to
_WORD = re.compile(r"\w+")
_FACT = re.compile(r"(?:[-*+] +)?(?:(?P<day>\d{4}-\d\d-\d\d): *)?(?P<untrusted>\[untrusted\] *)?(?P<text>.*)")
_DAY = re.compile(r"(\d{4})(\d\d)(\d\d)\.md")


@dataclass(frozen=True, slots=True)
class Note:
    """One line of a file, and its day (`2026-11-21`, empty: unknown)."""

    day: str
    text: str
    file: str = "MEMORY.md"
    untrusted: bool = False

    def __str__(self) -> str:
        return f"{self.day}: {self.text}" if self.day else self.text


class Notes:
    """Facts in `MEMORY.md` of the agent's own workspace, a dated line each, and in `memory/YYYYMM/YYYYMMDD.md`."""

    def __init__(self, workspace: Path, clock: Clock) -> None:
        self._workspace = workspace
        self._path = workspace / "MEMORY.md"
        self._clock = clock

    def remember(self, text: str, *, untrusted: bool = False) -> str:
        """Keep a fact as a line of MEMORY.md, synced to disk; one that stands there already isn't repeated.

        What is `untrusted` has that word before it.

        Raises ToolRefused when it is empty or too long, or the disk refuses: then nothing was kept.
        """
        fact = plain_fact(text)
        try:
            new = self._append(fact, f"{UNTRUSTED} " if untrusted else "")
        except OSError as error:
            raise ToolRefused(f"Nothing was remembered: {self._path} can't be written ({error.strerror})") from error
        return f"Remembered in {self._path.name}." if new else f"{self._path.name} says so already."

    def recall(self, query: str, limit: int = 10) -> Sequence[str]:
        """The facts that share most words with the query, the latest first among equals; for no words, the latest.

        A word is found in longer ones that begin with it. Raises ToolRefused when a file can't be read.
        """
        wanted = set(_WORD.findall(query.casefold()))
        found: list[tuple[int, str, int, Note]] = []
        for number, fact in enumerate(self.facts()):
            words = set(_WORD.findall(str(fact).casefold()))
            score = sum(any(word.startswith(part) for word in words) for part in wanted)
            if score or not wanted:
                found.append((score, fact.day, number, fact))
        found.sort(key=lambda hit: hit[:3], reverse=True)
        return [str(fact) for _, _, _, fact in found[: max(limit, 0)]]

    def forget(self, text: str) -> bool:
        """Take the lines of MEMORY.md that say this out of it; whether there was one.

        Raises ToolRefused when the disk refuses: then the file is as it was.
        """
        try:
            return self._path.exists() and self._drop(text.casefold())
        except (OSError, ConfigError) as error:
            raise ToolRefused(f"{self._path} can't be changed: {error}") from error

    def _drop(self, fact: str) -> bool:
        with _locked(self._path) as descriptor:
            data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            lines = data.splitlines(keepends=True)
            kept = [line for line in lines if not _says(line.decode(errors="replace"), fact)]
            if len(kept) < len(lines):
                write_private(self._path, b"".join(kept))
            return len(kept) < len(lines)

    def _append(self, fact: str, mark: str) -> bool:
        self._workspace.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(self._path) as descriptor:
            kept = _read(descriptor)
            if any(known.text.casefold() == fact.casefold() for known in _facts_in(kept, "")):
                return False
            line = f"- {self._clock.now():%Y-%m-%d}: {mark}{fact}\n"
            _add_whole(descriptor, ("" if kept.endswith("\n") or not kept else "\n") + line)
        return True

    def facts(self) -> Iterator[Note]:
        """All that is kept, older files first. Raises ToolRefused when a file can't be read."""
        days = [path for path in self._workspace.glob("memory/[0-9]*/[0-9]*.md") if _DAY.fullmatch(path.name)]
        for path in sorted(days, key=lambda path: path.name)[-_MOST_DAYS:]:
            yield from _facts_in(_text_of(path), _DAY.sub(r"\1-\2-\3", path.name), path.name)
        yield from _facts_in(_text_of(self._path), "")


def one_line(text: str) -> str:
    """The text as one line of printable signs."""
    return " ".join("".join(sign for sign in " ".join(text.split()) if sign.isprintable()).split())


def plain_fact(text: str) -> str:
    """A fact as it is kept: one line. Raises ToolRefused where nothing is left, or too much."""
    fact = one_line(text).removeprefix("- ")
    if not fact or len(fact) > _MOST_FACT:
        wrong = f"longer than {_MOST_FACT} characters: keep what matters of it" if fact else "empty"
        raise ToolRefused(f"Nothing was remembered: the text is {wrong}")
    return fact


@contextmanager
def _locked(path: Path) -> Generator[int]:
    """The open file at `path`, made where it is missing, which no other process of ours changes meanwhile."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | _OPEN, 0o600)
        try:
            _require_file(descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if not _is_still(descriptor, path):
                continue  # an editor put another file in its place
            yield descriptor
            return
        finally:
            os.close(descriptor)


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _require_file(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise OSError(errno.EINVAL, "it is not a file")


def _read(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, _MOST_READ, max(size - _MOST_READ, 0)).decode(errors="replace")


def _add_whole(descriptor: int, text: str) -> None:
    """Write the text behind the rest and sync it; where that fails, none of it stays."""
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
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise ToolRefused(f"{path} can't be read: {error.strerror}") from error
    try:
        _require_file(descriptor)
        return _read(descriptor)
    except OSError as error:
        raise ToolRefused(f"{path} can't be read: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _says(line: str, fact: str) -> bool:
    return any(note.text.casefold() == fact for note in _facts_in(line, ""))


def _facts_in(text: str, day: str, file: str = "MEMORY.md") -> Iterator[Note]:
    """The lines that say something; a line's own day counts, else the file's."""
    for line in text.splitlines():
        match = _FACT.fullmatch(line.strip())
        if match and match["text"] and not line.lstrip().startswith("#"):
            yield Note(match["day"] or day, match["text"], file, bool(match["untrusted"]))
