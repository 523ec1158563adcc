"""What may be spent: per turn, per session and per day, over all processes of the home."""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from denizen.engine.turn import Turn, TurnOver
from denizen.errors import DenizenError
from denizen.messages import AssistantMessage

if TYPE_CHECKING:
    from denizen.config import Config


class Budget:
    """Stops a turn before the call that could overspend: at most the calls in flight go beyond.

    Sums live in `spend.db` of the home, which is made with the first call that costs something.
    """

    def __init__(self, config: "Config", home: Path) -> None:
        self._limits = config
        self._path = home / "spend.db"
        self._db: sqlite3.Connection | None = None
        self._warned: set[str] = set()

    def check(self, turn: Turn) -> None:
        """End the turn when nothing is left of one of its budgets; local models cost nothing."""
        if turn.agent.model.local:
            return
        spent = turn.usage.cost_usd or 0.0
        self._hold("this turn", spent, self._limits.agent.max_cost_usd, "agent.max_cost_usd or --max-cost")
        if not self._path.exists():
            return
        session, day = self._spent(turn.session.key, f"{turn.agent.clock.now():%Y-%m-%d}")
        self._hold("this session", session, self._limits.budget.session_usd, "budget.session_usd")
        self._hold("today", day, self._limits.budget.day_usd, "budget.day_usd")

    def charge(self, turn: Turn, answer: AssistantMessage) -> None:
        """Count what a call cost; one whose price nobody knows is told once."""
        cost = answer.usage.cost_usd
        if cost:
            self._add(turn.session.key, f"{turn.agent.clock.now():%Y-%m-%d}", cost)
        elif cost is None and answer.model not in self._warned:
            self._warned.add(answer.model)
            turn.notice(f"The price of {answer.model} isn't known: budgets can't count it.", warning=True)

    def close(self) -> None:
        """Close the file."""
        if self._db:
            self._db.close()

    def _hold(self, what: str, spent: float, limit: float, setting: str) -> None:
        if spent >= limit:
            raise TurnOver("budget", f"The budget of {what} is spent: ${spent:.4f} of ${limit:g} ({setting} sets it).")

    def _spent(self, session: str, day: str) -> tuple[float, float]:
        query = (
            "SELECT coalesce(sum(usd) FILTER (WHERE session = ?1), 0), coalesce(sum(usd) FILTER (WHERE day = ?2), 0)"
            " FROM spend WHERE session = ?1 OR day = ?2"
        )
        try:
            return self._open().execute(query, (session, day)).fetchone()
        except sqlite3.Error as broken:
            raise self._broken(broken) from broken

    def _add(self, session: str, day: str, usd: float) -> None:
        query = "INSERT INTO spend VALUES (?, ?, ?) ON CONFLICT (session, day) DO UPDATE SET usd = usd + excluded.usd"
        try:
            self._open().execute(query, (session, day, usd))
        except sqlite3.Error as broken:
            raise self._broken(broken) from broken

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.touch(mode=0o600)
            self._db = sqlite3.connect(self._path, timeout=10, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS spend (session TEXT, day TEXT, usd REAL, PRIMARY KEY (session, day))"
            )
            self._db.execute("CREATE INDEX IF NOT EXISTS spend_by_day ON spend (day)")
        return self._db

    def _broken(self, why: sqlite3.Error) -> DenizenError:
        return DenizenError(f"{self._path} can't count what calls cost: {why}. Make room, or move the file away.")
