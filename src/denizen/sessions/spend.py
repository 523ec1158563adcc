"""What may be spent: per turn, per session and per day, over all processes of the home."""

import logging
import sqlite3
from pathlib import Path

import msgspec

from denizen.clock import Clock
from denizen.config import Config
from denizen.errors import DenizenError
from denizen.sessions.file import identity, is_at

_MOST_UNWRITTEN = 0.01
"""US dollars that a process may have spent and not written down yet: a write costs, too."""
_WRITTEN_EVERY = 1.0
"""Seconds after which they are written with the next charge, however few they are."""
_READ_EVERY = 0.1
"""Seconds for which what other processes had spent is taken for granted."""

PATIENCE = 5.0
"""Seconds to wait for another process that writes."""

_DAY = "day"
_ADD = """INSERT INTO spend SELECT key, value FROM json_each(?) WHERE true
          ON CONFLICT (name) DO UPDATE SET usd = usd + excluded.usd"""
_log = logging.getLogger(__name__)


class Spend:
    """Counts what model calls cost, and says before a call whether a limit is reached (`ports.Budget`).

    What goes beyond is at most the calls in flight, a cent per process, and what others begin within a tenth of a
    second. Sums live in `spend.db` of the home, which is made with the first call that costs something; where it is
    removed or replaced, counting goes on in the one that is there.
    """

    def __init__(self, config: Config, home: Path, clock: Clock) -> None:
        self._config = config
        self._path = home / "spend.db"
        self._clock = clock
        self._db: sqlite3.Connection | None = None
        self._is = (0, 0)  # which file that is
        self._known: dict[str, float] = {}  # what was in the file when it was read
        self._read_at = 0.0
        self._unwritten: dict[str, float] = {}  # what isn't there yet, by session
        self._unwritten_usd = 0.0
        self._written_at = 0.0
        self._unpriced: set[str] = set()

    def check(self, session_key: str, turn_usd: float) -> str:
        """Why no further call may be made; empty: one may.

        Raises DenizenError when what was spent can't be read, or the last call not be counted.
        """
        if self._unwritten_usd >= _MOST_UNWRITTEN:  # writing it failed: no further call before it is counted
            self._write()
        session, day = self._spent(session_key)
        for what, spent, limit, setting in (
            ("this turn", turn_usd, self._config.agent.max_cost_usd, "agent.max_cost_usd or --max-cost"),
            ("this session", session, self._config.budget.session_usd, "budget.session_usd"),
            ("today", day, self._config.budget.day_usd, "budget.day_usd"),
        ):
            if spent >= limit:
                return f"The budget of {what} is spent: ${spent:.4f} of ${limit:g} ({setting} sets it)."
        return ""

    def charge(self, session_key: str, cost: float | None, model: str) -> str:
        """Count what a call cost; returns what the user should know: that it couldn't be counted, or has no price."""
        if cost is None:
            if model in self._unpriced:
                return ""
            self._unpriced.add(model)
            return f"No price is known for {model}; its calls don't count against budgets."
        if cost:
            self._unwritten_usd += cost
            self._unwritten[session_key] = self._unwritten.get(session_key, 0.0) + cost
            if self._unwritten_usd >= _MOST_UNWRITTEN or self._clock.monotonic() - self._written_at >= _WRITTEN_EVERY:
                try:
                    self._write()
                except DenizenError as error:
                    return str(error)  # the answer is paid for and kept all the same
        return ""

    def close(self) -> None:
        """Write what isn't written yet, and close the file."""
        try:
            if self._unwritten:
                self._write()
        except DenizenError as error:
            _log.warning("%s", error)
        self._forget()

    def _today(self) -> str:
        return f"day {self._clock.now().date().isoformat()}"

    def _spent(self, session: str) -> tuple[float, float]:
        """Of the session, and of the day, by all processes."""
        known, now = self._known, self._clock.monotonic()
        if now - self._read_at >= _READ_EVERY:
            known.clear()
            self._read_at = now
        if session not in known:
            day = self._today()
            query = "SELECT name, usd FROM spend WHERE name IN (?, ?)"
            found = dict(self._execute(query, session, day) if self._path.exists() else ())
            known[session], known[_DAY] = found.get(session, 0.0), found.get(day, 0.0)
        return known[session] + self._unwritten.get(session, 0.0), known[_DAY] + self._unwritten_usd

    def _write(self) -> None:
        self._written_at = self._clock.monotonic()
        sums = msgspec.json.encode(self._unwritten | {self._today(): self._unwritten_usd}).decode()
        self._execute(_ADD, sums)
        self._unwritten.clear()
        self._unwritten_usd = 0.0
        self._known.clear()

    def _execute(self, statement: str, *values: object) -> list[tuple[str, float]]:
        try:
            if self._db and not is_at(str(self._path), self._is):
                self._forget()
            if self._db is None:
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._path.touch(mode=0o600)
                self._is = identity(self._path.stat())
                self._db = sqlite3.connect(self._path, timeout=PATIENCE, isolation_level=None)
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute(
                    "PRAGMA synchronous = NORMAL"
                )  # written, not synced: a call must not wait for the disk
                self._db.execute("CREATE TABLE IF NOT EXISTS spend (name TEXT PRIMARY KEY, usd REAL) WITHOUT ROWID")
            return self._db.execute(statement, values).fetchall()
        except (sqlite3.Error, OSError) as why:
            self._forget()  # the user may put another in its place
            raise DenizenError(
                f"{self._path} can't count what calls cost: {why}. End what holds it, make room, or move the file away."
            ) from why

    def _forget(self) -> None:
        if self._db:
            self._db.close()
            self._db = None
