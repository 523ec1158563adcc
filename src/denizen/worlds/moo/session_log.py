"""The log of an agent's run, a line for each thing that happened, and what a new run takes over of the last one.

Seed 000, "Session Resume".
"""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, TextIO

import msgspec

from denizen.special_tokens import scrub
from denizen.worlds.moo.listener import Kind

LOGS: Final = "logs"
LAST: Final = 40
"""Lines of the last run that count."""
CHARACTERS: Final = 120
"""Characters of each of them."""
BUILT: Final = "[Plan] All planned rooms built."
CALL_DONE: Final = "All planned rooms are built. There is nothing left to do: call done() now."
_RESUMED: Final = frozenset({"action", "server", "goal", "thought", "server_error"})
_MOST_BYTES: Final = 1_000_000
_LINE: Final = re.compile(r"\[\d\d:\d\d:\d\d\] \[(?P<kind>\w+)\] (?P<text>.*)")


class PriorSession(msgspec.Struct, frozen=True):
    """What the last run left: its last lines as a summary, and the goal that it had."""

    summary: str = ""
    goal: str = ""


class SessionLog:
    """Writes the log of one run: `logs/YYYY-MM-DDTHH-MM-SS.log` in the agent's directory, private to the user.

    Raises OSError where the disk refuses.
    """

    def __init__(self, folder: Path, at: datetime) -> None:
        logs = folder / LOGS
        logs.mkdir(mode=0o700, exist_ok=True)
        self.path = logs / f"{at:%Y-%m-%dT%H-%M-%S}.log"
        self._file: TextIO = self.path.open("a", encoding="utf-8", errors="replace", buffering=1)
        self.path.chmod(0o600)

    def write(self, kind: Kind, text: str, at: datetime) -> None:
        """Add what happened; several lines each become one of the log."""
        for line in text.splitlines() or [""]:
            self._file.write(f"[{at:%H:%M:%S}] [{kind}] {line}\n")

    def close(self) -> None:
        """Nothing more happens."""
        self._file.close()


def read_prior_session(folder: Path, *, is_timed: bool, keeps_summary: bool = False) -> PriorSession:
    """What the most recent log in the agent's directory says; nothing where there is none, or it can't be read.

    An agent that a timer wakes (`is_timed`) begins without goal and summary; one that pages wake without the summary,
    and its goal only says that it was in the middle of something. `keeps_summary`: the summary counts all the same.
    """
    logs = sorted((folder / LOGS).glob("????-??-??T??-??-??.log"))
    prior = _prior(_tail(logs[-1]).splitlines() if logs else [])
    return PriorSession(prior.summary if keeps_summary else "", "" if is_timed else prior.goal)


def _tail(path: Path) -> str:
    """The end of a log, which may be long; empty where it can't be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _MOST_BYTES, 0))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _prior(lines: Sequence[str]) -> PriorSession:
    entries = [(found["kind"], scrub(found["text"])) for line in lines if (found := _LINE.fullmatch(line))]
    goals = [text for _, text in entries if text.startswith("[Goal] ")]
    goal = goals[-1].removeprefix("[Goal] ") if goals else ""
    if any(text.startswith(BUILT) for _, text in entries):
        return PriorSession(CALL_DONE, goal)
    kept = [f"[{kind}] {text[:CHARACTERS]}" for kind, text in entries if kind in _RESUMED][-LAST:]
    return PriorSession("\n".join(kept), goal)
