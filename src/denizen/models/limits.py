"""What a model takes: what its server says, what a refusal taught, what is configured, what the catalogue knows."""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from denizen.errors import ModelError
from denizen.models.catalogue import longest_answer
from denizen.ports import SURELY_HELD, Limits, ModelRequest

LEAST_ANSWER = 1024
"""Tokens that an answer may take although the context seems to fill the window: that is an estimate."""


@dataclass(slots=True)
class Learnt:
    """What a server said of a model's window and longest answer, in tokens; 0: nothing yet."""

    window: int = 0
    longest: int = 0
    asked: bool = False


LEARNT: dict[tuple[str, str], Learnt] = {}
"""By server and model, for all agents of the process."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """The limits of one model; without a name, of one that says them itself by `known`.

    `ask` asks its server for the window (0: it doesn't say), once per process; else `known` is the catalogue's, slow to
    read. A configured window counts where it is smaller than what the server says.
    """

    model: str = ""
    configured: int = 0
    known: Callable[[], Limits] = Limits
    ask: Callable[[], int] | None = None
    learnt: Learnt = field(default_factory=Learnt)

    def __call__(self) -> Limits:
        """Both; blocks while the server is asked or the catalogue is read."""
        if self.ask and not self.learnt.asked:
            self.learnt.window = self.learnt.window or self.ask()
            self.learnt.asked = True
        said = [tokens for tokens in (self.learnt.window, self.configured) if tokens]
        return Limits(min(said) if said else self.known().window, self._longest())

    def learn(self, error: ModelError) -> bool:
        """Take in the numbers of a refusal; whether they are news."""
        before = self.learnt.window, self.learnt.longest
        self.learnt.window = error.window or self.learnt.window
        self.learnt.longest = error.max_output or self.learnt.longest
        return before != (self.learnt.window, self.learnt.longest)

    def fitted(self, request: ModelRequest) -> ModelRequest:
        """The request with `max_tokens` that the model can give, in the room that is left of its window."""
        longest = min(request.max_tokens, self._longest())
        if request.tokens > SURELY_HELD or self.learnt.window or not self.model:
            window = self().window
            longest = min(longest, max(window - request.tokens, min(LEAST_ANSWER, window // 4)))
        return request if longest == request.max_tokens else msgspec.structs.replace(request, max_tokens=longest)

    def _longest(self) -> int:
        return self.learnt.longest or (longest_answer(self.model) if self.model else self.known().max_output)
