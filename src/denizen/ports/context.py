"""The context policy: what a model sees."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable

import msgspec

from denizen.entries import AnyEntry, CompactionEntry
from denizen.messages import Message, Usage
from denizen.ports.model import AskModel, KnownModel
from denizen.ports.session import Session
from denizen.ports.tool import Traits
from denizen.runtime.clock import Clock

SURELY_HELD = 4_000
"""Tokens that every hosted model sees: the catalogue needn't be loaded to know."""


class WorldLine(msgspec.Struct, frozen=True):
    """A line that a world showed: when, and who said it. It is seen, and not stored in the transcript.

    `self` is the agent's own echo, `operator` the person who runs the agent. `in_result`: a tool's result has it, too,
    which shows it while the turn goes on.
    """

    text: str
    at: datetime
    speaker: Literal["world", "player", "self", "operator"] = "world"
    in_result: bool = False


class View(msgspec.Struct, frozen=True):
    """What a context policy may look at.

    `answer` and `prompt` are the tokens that the longest answer and the system prompt with its tools take;
    `usage` is what the last call really used (None: there was none, or the context has changed since).
    """

    session: Session
    model: KnownModel
    answer: int
    prompt: int
    usage: Usage | None
    clock: Clock

    @property
    def window(self) -> int:
        """Tokens that the model sees."""
        return self.model.limits(self.session.key).window

    @property
    def room(self) -> int:
        """Tokens that are left for messages between the prompt and the longest answer, or a quarter of the window."""
        window = self.window
        return window - self.prompt - min(self.answer, window // 4)

    def holds(self, tokens: int) -> bool:
        """Whether that many tokens fit with room for an answer; small counts need no look-up for hosted models."""
        if tokens <= SURELY_HELD and not self.model.local:
            return True
        return tokens <= self.prompt + self.room


class ContextPolicy(Protocol):
    """Decides what the model sees."""

    def observe(self, item: AnyEntry | WorldLine) -> None:
        """Take in one more entry, or a line of the world; costs what is new, not what is old."""

    def assemble(self, view: View) -> Sequence[Message]:
        """The messages of the next call."""

    def tokens(self, view: View) -> int:
        """The size of the next call with its prompt, as far as it is known beforehand."""

    async def relieve(self, view: View, level: int, ask: AskModel) -> CompactionEntry | None:
        """The entry that makes the context smaller; None: it can't. Level 1 summarises, 2 truncates, 3 keeps less."""


@runtime_checkable
class TraitedContext(ContextPolicy, Protocol):
    """A context policy that drops results; with any other, all that a session saw stays in sight."""

    @property
    def traits(self) -> Traits:
        """The traits of the results that the model sees."""
