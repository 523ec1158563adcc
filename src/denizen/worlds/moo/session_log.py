"""The logs of an agent's runs, a line per event, and their evaluation: the last lines, slow cycles.

Decisions, "A character starts cold" and "Token chain".
"""

import os
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from denizen.text.special_tokens import scrub
from denizen.worlds.moo.listener import CharacterListener, Facts, Kind, Status, slow_cycle

LOGS: Final = "logs"
MAX_PRIOR_LINES: Final = 40
"""Lines of the last run that count."""
MAX_LINE_CHARS: Final = 120
"""Characters of each of them."""
MAX_LOG_BYTES: Final = 10_000_000
"""Bytes of a log after which a new one begins."""
BUILT: Final = "[Plan] All planned rooms built."
CALL_DONE: Final = "All planned rooms are built. There is nothing left to do: call done() now."
_RESUMED: Final = frozenset({"action", "server", "goal", "thought", "server_error"})
_OF_OTHERS: Final = frozenset({"server", "server_error", "operator"})
_DAY_S: Final = 24 * 3600
_TAIL_BYTES: Final = 1_000_000
"""Bytes of a log that are read, at its end."""
_LINE: Final = re.compile(r"\[(?P<time>\d\d:\d\d:\d\d)\] \[(?P<kind>\w+)\] (?P<text>.*)")
_CYCLE: Final = re.compile(r"\[Cycle\] duration=(?P<seconds>\d{1,9}\.\d)s ")


class CycleAge(msgspec.Struct, frozen=True):
    """Whether an agent may still be thinking.

    `since_acted`: seconds since it logged something of its own (None: it never did), what others said not counted;
    `slow_cycle`: how long one of its slow cycles takes (p95), in seconds.
    """

    since_acted: float | None = None
    slow_cycle: float = 0.0


class SessionLog:
    """A listener that logs what it hears, `logs/YYYY-MM-DDTHH-MM-SS.log` in the agent's directory, and passes it on.

    Where the disk refuses, it says so once, and logs again when it can. The log is private to the user, without secrets
    that are known; `now` is the time where the user is. A new log deletes those last written more than `keep_days` ago
    (0: none).
    """

    def __init__(
        self,
        listener: CharacterListener,
        folder: Path,
        now: Callable[[], datetime],
        redact: Callable[[str], str],
        keep_days: float = 0.0,
    ) -> None:
        self._listener = listener
        self._logs = folder / LOGS
        self._now = now
        self._redact = redact
        self._keep = timedelta(days=keep_days)
        self._path: Path | None = None
        self._is_refused = False

    def status(self, status: Status) -> None:
        """Pass it on."""
        self._listener.status(status)

    def facts(self, facts: Facts) -> None:
        """Pass it on."""
        self._listener.facts(facts)

    def line(self, kind: Kind, text: str) -> None:
        """Log what happened, several lines as lines of their own, and pass it on."""
        self._listener.line(kind, text)
        at = self._now()
        lines = [f"[{at:%H:%M:%S}] [{kind}] {line}\n" for line in self._redact(text).splitlines() or [""]]
        try:
            self._append("".join(lines).encode(errors="replace"), at)
        except OSError as error:
            if not self._is_refused:
                self._listener.line(
                    "system", f"{self._logs} can't be written: {error.strerror}. Logging stops until it can."
                )
            self._is_refused = True
        else:
            self._is_refused = False

    def _append(self, data: bytes, at: datetime) -> None:
        self._logs.mkdir(mode=0o700, exist_ok=True)
        if self._path is None:
            self._path = self._logs / f"{at:%Y-%m-%dT%H-%M-%S}.log"
            oldest = (at - self._keep).timestamp()
            for path in self._logs.glob("*.log") if self._keep else ():
                if path.stat().st_mtime < oldest:
                    path.unlink(missing_ok=True)
        with open(self._path, "ab", buffering=0, opener=_private) as file:
            file.write(data)
            if file.tell() > MAX_LOG_BYTES:
                self._path = None


def read_prior_session(folder: Path) -> str:
    """The last lines of the most recent log in the agent's directory; empty if no log can be read.

    Where all planned rooms were built, they say to call done.
    """
    entries = [(kind, scrub(text)) for _, kind, text in _read_end(folder)[0]]
    if ("system", BUILT) in entries:
        return CALL_DONE
    return "\n".join(
        [f"[{kind}] {text[:MAX_LINE_CHARS]}" for kind, text in entries if kind in _RESUMED][-MAX_PRIOR_LINES:]
    )


def cycle_age(folder: Path, now: float) -> CycleAge:
    """Whether the agent of a directory may still be thinking, by its most recent log; `now` in POSIX seconds."""
    entries, written_at = _read_end(folder)
    own = [at for at, kind, _ in entries if kind not in _OF_OTHERS]
    if not own:
        return CycleAge()
    cycles = [
        float(found["seconds"]) for _, kind, text in entries if kind == "system" and (found := _CYCLE.match(text))
    ]
    return CycleAge(
        since_acted=max(now - written_at, 0.0) + (_seconds(entries[-1][0]) - _seconds(own[-1])) % _DAY_S,
        slow_cycle=slow_cycle(cycles),
    )


def _read_end(folder: Path) -> tuple[Sequence[tuple[str, str, str]], float]:
    """Time, kind and text of the most recent log's last lines, and when it was written, in POSIX seconds.

    Empty if no log can be read.
    """
    path = max((folder / LOGS).glob("????-??-??T??-??-??.log"), default=None)
    if path is None:
        return [], 0.0
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            file.seek(max(status.st_size - _TAIL_BYTES, 0))
            lines = map(_LINE.fullmatch, file.read().decode("utf-8", "replace").splitlines())
    except OSError:
        return [], 0.0
    return [(found["time"], found["kind"], found["text"]) for found in lines if found], status.st_mtime


def _seconds(time: str) -> int:
    """Seconds since midnight."""
    hours, minutes, seconds = map(int, time.split(":"))
    return hours * 3600 + minutes * 60 + seconds


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
