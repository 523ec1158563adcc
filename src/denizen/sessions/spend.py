"""What may be spent: per turn, per session and per day, over all processes that share the sums."""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, Protocol, TypeVar

from denizen.config import Config
from denizen.errors import DenizenError
from denizen.runtime.cancellation import run_in_thread
from denizen.runtime.clock import Clock

_MAX_UNWRITTEN_USD = 0.01
"""US dollars that a process may have spent before it writes them to the shared sums."""
_WRITE_EVERY_S = 1.0
"""Seconds after which the next charge writes them, whatever the amount."""
_READ_EVERY_S = 0.1
"""Seconds before the sums of other processes are read again."""

_DAY = "day"
_log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class Sums(Protocol):
    """US dollars by name, which all processes add to. Raises DenizenError when the disk or the server refuses."""

    is_remote: bool
    """Asking it takes as long as a network does."""

    def read(self, names: Sequence[str]) -> Mapping[str, float]:
        """The known sums of these names."""

    def add(self, sums: Mapping[str, float]) -> None:
        """Add to them, all at once."""

    def forget(self, days: float, limit: int) -> int:
        """Delete at most `limit` sums that haven't grown for `days` days; their number."""

    def close(self) -> None:
        """Close the connection; the next call opens another."""


class SerialExecutor:
    """Runs one operation on sums at a time; in a thread if the sums are remote."""

    def __init__(self, sums: Sums) -> None:
        self._is_remote = sums.is_remote
        self._one_at_a_time = threading.Lock()

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the operation, and return its result."""

        def alone() -> T:
            with self._one_at_a_time:
                return work(*args, **kwargs)

        return await run_in_thread(None, alone) if self._is_remote else work(*args, **kwargs)


class Spend:
    """Counts the cost of model calls, and checks the limits before each call (`ports.Budget`).

    A limit can be exceeded by the calls in flight, one cent per process, and calls that others begin within 0.1 s.
    """

    def __init__(self, config: Config, sums: Sums, clock: Clock) -> None:
        self._config = config
        self._sums = sums
        self._clock = clock
        self._executor = SerialExecutor(sums)
        self._known: dict[str, float] = {}  # what the sums were when they were read
        self._read_at = 0.0
        self._unwritten: dict[str, float] = {}  # what isn't there yet, by session
        self._unwritten_usd = 0.0
        self._written_at = 0.0
        self._can_write = False  # as far as the last attempt says
        self._unpriced: set[str] = set()

    async def check(self, session_key: str, turn_usd: float) -> str:
        """Why no further call may be made; empty: one may.

        Raises DenizenError when what was spent can't be read, or what the call will cost can't be written.
        """
        return await self._executor.run(self._check, session_key, turn_usd)

    async def charge(self, session_key: str, cost: float | None, model: str) -> str:
        """Count the cost of a call; returns a warning for the user if it couldn't be counted, or has no known price."""
        if cost:
            return await self._executor.run(self._charge, session_key, cost)
        if cost is None and model not in self._unpriced:
            self._unpriced.add(model)
            return f"No price is known for {model}; its calls don't count against budgets."
        return ""

    async def close(self) -> None:
        """Write the remaining costs, and close the sums."""
        await self._executor.run(self._close)

    def _check(self, session_key: str, turn_usd: float) -> str:
        if not self._can_write:
            self._write()  # nothing, at first
        session, day = self._spent(session_key)
        for what, spent, limit, setting in (
            ("this turn", turn_usd, self._config.agent.max_cost_usd, "agent.max_cost_usd or --max-cost"),
            ("this session", session, self._config.budget.session_usd, "budget.session_usd"),
            ("today", day, self._config.budget.day_usd, "budget.day_usd"),
        ):
            if spent >= limit:
                return f"The budget of {what} is spent: ${spent:.4f} of ${limit:g} ({setting} sets it)."
        return ""

    def _charge(self, session_key: str, cost: float) -> str:
        self._unwritten_usd += cost
        self._unwritten[session_key] = self._unwritten.get(session_key, 0.0) + cost
        if self._unwritten_usd >= _MAX_UNWRITTEN_USD or self._clock.monotonic() - self._written_at >= _WRITE_EVERY_S:
            try:
                self._write()
            except DenizenError as error:
                return str(error)  # the answer is paid for and kept all the same
        return ""

    def _close(self) -> None:
        try:
            if self._unwritten:
                self._write()
        except DenizenError as error:
            _log.warning("%s", error)
        self._sums.close()

    def _today(self) -> str:
        return f"day {self._clock.now().date().isoformat()}"

    def _spent(self, session: str) -> tuple[float, float]:
        """US dollars spent in the session and on this day, by all processes."""
        known, now = self._known, self._clock.monotonic()
        if now - self._read_at >= _READ_EVERY_S:
            known.clear()
            self._read_at = now
        if session not in known:
            day = self._today()
            found = self._sums.read((session, day))
            known[session], known[_DAY] = found.get(session, 0.0), found.get(day, 0.0)
        return known[session] + self._unwritten.get(session, 0.0), known[_DAY] + self._unwritten_usd

    def _write(self) -> None:
        self._written_at = self._clock.monotonic()
        self._can_write = False
        self._sums.add(self._unwritten | {self._today(): self._unwritten_usd})
        self._unwritten.clear()
        self._unwritten_usd = 0.0
        self._can_write = True
        self._known.clear()
