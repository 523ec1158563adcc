"""The prompt builder: who the agent is, in words for the model."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import msgspec


class SystemPrompt(msgspec.Struct, frozen=True):
    """A session's system prompt. `private`: it holds the user's own words; `untrusted`: and text that others wrote.

    Of that, `quoted` is what nobody but them has worded. `notices` are for the user: what couldn't be read, or left no
    room.
    """

    text: str
    private: bool = False
    untrusted: bool = False
    quoted: Sequence[str] = ()
    notices: Sequence[str] = ()


class ToolGuide(NamedTuple):
    """How to use these tools, in the words of their server: others' text."""

    server: str
    text: str
    tools: Collection[str]


class PromptBuilder(Protocol):
    """Makes the system prompt of a session, once: it stays the same byte by byte, so that providers can cache it."""

    @property
    def made_for(self) -> Sequence[Any]:
        """What the prompt depends on besides the day, as JSON values: when that changes, the prompt is renewed."""

    def for_agent(self, *, tools: Sequence[str], model: str, instructions: str = "") -> "PromptBuilder":
        """The builder for an agent with these tools and that model; `instructions`, if any, say who it is."""

    def build(self, began: datetime) -> SystemPrompt:
        """The prompt of a session that `began` then. Raises ConfigError."""
