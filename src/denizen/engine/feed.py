"""Keeps a context policy, and what else the engine must know of a session, in step with its entries."""

from collections.abc import Callable, Sequence
from typing import Any

from denizen.context.estimate import estimate_text
from denizen.entries import (
    AnswerEntry,
    AnyEntry,
    AssistantEntry,
    CompactionEntry,
    ParkedEntry,
    StateEntry,
    UserEntry,
)
from denizen.messages import Usage
from denizen.ports import ContextPolicy

PROMPT = "prompt"
"""The state entry that holds the system prompt of a session."""

APPROVED = "approved"
"""The state entry that holds a rule which the user approved for the session."""


class Feed:
    """Reads on where it stopped: a turn costs what was added. A moved head is read anew.

    `prompt` and `prompt_day` are the session's system prompt and the day it was made for ("": it must be made anew).
    """

    def __init__(self, policy: Callable[[], ContextPolicy]) -> None:
        self._new_policy = policy
        self._entries: Sequence[AnyEntry] = ()
        self._restart(())

    def _restart(self, entries: Sequence[AnyEntry]) -> None:
        self._entries, self._seen = entries, 0
        self.context = self._new_policy()
        self.user_ids: set[str] = set()
        self.approved: list[Any] = []
        self.answers: dict[str, AnswerEntry] = {}
        self.parked: dict[str, ParkedEntry] = {}
        self.prompt = self.prompt_day = ""
        self.prompt_tokens = 0
        self.last_usage: Usage | None = None

    def read_on(self, entries: Sequence[AnyEntry]) -> None:
        """Take in the session's entries up to its head."""
        if entries is not self._entries or len(entries) < self._seen:
            self._restart(entries)
        while self._seen < len(entries):
            self._observe(entries[self._seen])
            self._seen += 1

    def _observe(self, entry: AnyEntry) -> None:
        self.context.observe(entry)
        match entry:
            case UserEntry(message=message) if message.id:
                self.user_ids.add(message.id)
            case AssistantEntry(message=message):
                self.last_usage = message.usage
            case StateEntry(name=name, value=value):
                self._remember(name, value)
            case CompactionEntry():
                self.prompt_day, self.last_usage = "", None
            case ParkedEntry(call_id=call_id):
                self.parked[call_id] = entry
            case AnswerEntry(call_id=call_id):
                self.answers[call_id] = entry
            case _:
                pass

    def _remember(self, name: str, value: Any) -> None:
        if name == PROMPT:
            self.prompt, self.prompt_day = value["text"], value["day"]
            self.prompt_tokens = estimate_text(self.prompt)
        elif name == APPROVED:
            self.approved.append(value)
