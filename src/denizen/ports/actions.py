"""The action format: how a model acts."""

from collections.abc import Sequence, Set
from typing import Any, Protocol

import msgspec

from denizen.messages import AssistantMessage, Message, ToolCall, ToolResult
from denizen.ports.model import ModelRequest
from denizen.ports.tool import Toolset
from denizen.seen import SeenText

UNSEEN = SeenText()
"""Nothing was seen: for whoever needn't know which calls are quotations."""

MISUSED = "_misused"
"""The argument that stands for all the others where they can't be read: why, in words for the model."""


class Directive(msgspec.Struct, frozen=True):
    """Something the model said about itself: a goal, a plan, a note."""

    name: str
    value: Any


class Intent(msgspec.Struct, frozen=True):
    """What a reply means: calls to run, the text for the person, thoughts, and directives.

    `ends`: `reply` is the answer, once the calls have run, whatever they give. `problems` are told to the model with
    the results. `heard` is the text as it counts, where part of it doesn't (None: all of it does). `quoted` are the ids
    of the calls that only repeat what the model has read.
    """

    calls: Sequence[ToolCall] = ()
    reply: str = ""
    thoughts: str = ""
    directives: Sequence[Directive] = ()
    ends: bool = False
    problems: Sequence[str] = ()
    heard: str | None = None
    quoted: Set[str] = frozenset()


class Spoken(Protocol):
    """The words of one reply for the person, while it streams."""

    def feed(self, piece: str) -> str:
        """What can be shown now: the very same object where that is all of the piece.

        What is a call, or may become one, is held back; it is shown at the end where the whole reply says that it is
        none.
        """
        ...


class ActionFormat(Protocol):
    """How a model acts: the way it is told of tools, and the way its reply is read."""

    def prepare(self, request: ModelRequest, tools: Toolset) -> ModelRequest:
        """The request with the tools in it: as schemas, or as a grammar in the prompt."""
        ...

    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = UNSEEN) -> Intent:
        """What the reply asks for: for the same message always the same, ids included, which differ within it.

        Only which of the calls are `quoted` depends on what the model had `seen` before it.
        """
        ...

    def spoken(self, tools: Toolset) -> Spoken | None:
        """Takes the words out of a reply that streams; None: all is shown, and what is a call taken back at the end."""
        ...

    def report(self, results: Sequence[ToolResult]) -> Sequence[Message]:
        """The results of one iteration, as the messages that the model gets."""
        ...

    def show(self, call: ToolCall, tools: Toolset) -> str:
        """The call in a line, as the model would write it."""
        ...
