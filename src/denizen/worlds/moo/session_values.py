"""The values that outlive a character's process: `state` entries of its session."""

from collections.abc import Iterator
from typing import Any, TypeVar

from denizen.engine.session_state import SessionState
from denizen.entries import CompactionEntry, StateEntry
from denizen.ports import Session

T = TypeVar("T")

GOAL, PLAN, TODO, SUMMARY = "goal", "plan", "todo", "memory_summary"
"""The state entries that the model sees above its window."""
CHAIN, RUN, CLEAR, IS_BUILT = "chain", "run", "clear_window", "plan_is_built"
"""Others: what is known of the token, whether the process ended properly, what empties the window, and whether all
rooms of the plan are built."""


class SessionValues:
    """The values of a session's `state` entries: of each name the last one counts, the model's own included."""

    def __init__(self, session: Session, state: SessionState) -> None:
        self._session = session
        self._state = state
        self._values: dict[str, StateEntry] = {}
        self._ours: set[str] = set()
        self._read = 0
        self._news: list[StateEntry] = []
        self.read_on()
        self._news.clear()

    def get(self, name: str, kind: type[T]) -> T | None:
        """The value of that name; None if it is missing or has another type."""
        self.read_on()
        entry = self._values.get(name)
        return entry.read(kind) if entry else None

    async def keep(self, name: str, value: Any) -> None:
        """Write a value, unless it is the one that counts."""
        self.read_on()
        if name in self._values and self._values[name].value == value:
            return
        self._ours.add(await self._session.append(StateEntry(name=name, value=value)))
        self._state.read_on(self._session.entries)

    def news(self) -> Iterator[StateEntry]:
        """The entries since the last look that `keep` didn't write."""
        self.read_on()
        while self._news:
            yield self._news.pop(0)

    def read_on(self) -> None:
        """Take in what was written to the session."""
        entries = self._session.entries
        for entry in entries[self._read :]:
            if isinstance(entry, CompactionEntry) and entry.summary:
                self._values[SUMMARY] = StateEntry(name=SUMMARY, value=entry.summary)
            elif isinstance(entry, StateEntry):
                self._values[entry.name] = entry
                if entry.id in self._ours:
                    self._ours.remove(entry.id)
                else:
                    self._news.append(entry)
        self._read = len(entries)
