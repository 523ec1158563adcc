"""What may be spent: per turn, per session and per day, over all processes of the home."""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from denizen.engine.turn import Turn, TurnOver
from denizen.errors import DenizenError
from denizen.messages import AssistantMessage

if TYPE_CHECKING:
    from denizen.config import Config


HELD = 0.01
"""US dollars of a turn that are counted with its end, or with the call that makes them more: a write costs, too."""


class Budget:
    """Stops a turn before the call that could overspend: at most the calls in flight, and a cent per turn, go beyond.

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
        spent = turn.account.usage.cost_usd or 0.0
        _hold("this turn", spent, self._limits.agent.max_cost_usd, "agent.max_cost_usd or --max-cost")
        if self._db is None and not self._path.exists():
            return
        session, day = self._spent(*_names(turn))
        _hold("this session", session + turn.uncharged, self._limits.budget.session_usd, "budget.session_usd")
        _hold("today", day + turn.uncharged, self._limits.budget.day_usd, "budget.day_usd")

    def charge(self, turn: Turn, answer: AssistantMessage) -> None:
        """Count what a call cost; one whose price nobody knows is told once, and so is what can't be counted."""
        cost = answer.usage.cost_usd
        if cost:
            turn.uncharged += cost
            if turn.uncharged >= HELD:
                self.settle(turn)
        elif cost is None and not turn.agent.model.local:
            self._warn(turn, answer.model or turn.agent.model.name)

    def settle(self, turn: Turn) -> None:
        """Count what the turn's calls cost and isn't counted yet."""
        if not turn.uncharged:
            return
        try:
            self._add(turn.uncharged, *_names(turn))
        except DenizenError as error:
            turn.notice(str(error), warning=True)  # the answer is paid for and kept all the same
        turn.uncharged = 0.0

    def close(self) -> None:
        """Close the file."""
        if self._db:
            self._db.close()

    def _warn(self, turn: Turn, model: str) -> None:
        if model not in self._warned:
            self._warned.add(model)
            turn.notice(f"What calls of {model} cost isn't known: budgets can't count them.", warning=True)

    def _spent(self, session: str, day: str) -> tuple[float, float]:
        rows = dict(self._execute("SELECT name, usd FROM spend WHERE name IN (?, ?)", session, day))
        return rows.get(session, 0.0), rows.get(day, 0.0)

    def _add(self, usd: float, session: str, day: str) -> None:
        rows = "INSERT INTO spend VALUES (?, ?), (?, ?)"
        self._execute(f"{rows} ON CONFLICT (name) DO UPDATE SET usd = usd + excluded.usd", session, usd, day, usd)

    def _execute(self, statement: str, *values: object) -> list[tuple[str, float]]:
        try:
            return self._open().execute(statement, values).fetchall()
        except (sqlite3.Error, OSError) as why:
            raise DenizenError(
                f"{self._path} can't count what calls cost: {why}. Make room, or move the file away."
            ) from why

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.touch(mode=0o600)
            self._db = sqlite3.connect(self._path, timeout=5, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")  # written, not synced: a call must not wait for the disk
            self._db.execute("CREATE TABLE IF NOT EXISTS spend (name TEXT PRIMARY KEY, usd REAL) WITHOUT ROWID")
        return self._db


def _names(turn: Turn) -> tuple[str, str]:
    return turn.session.key, f"day {turn.agent.clock.now().date().isoformat()}"


def _hold(what: str, spent: float, limit: float, setting: str) -> None:
    if spent >= limit:
        raise TurnOver("budget", f"The budget of {what} is spent: ${spent:.4f} of ${limit:g} ({setting} sets it).")
