"""The action format: how a model acts."""

from collections.abc import Sequence, Set
from typing import Any, Protocol

import msgspec

from denizen.messages import AssistantMessage, Message, ToolCall, ToolResult
from denizen.ports.model import ModelRequest
from denizen.ports.tool import Tool, Toolset
from denizen.text.seen import SeenText

NOTHING_SEEN = SeenText()
"""For callers that don't need to know which calls are quotations."""

MISUSED = "_misused"
"""The only argument of a call whose arguments can't be read: the reason, in words for the model."""


class Directive(msgspec.Struct, frozen=True):
    """Something the model said about itself: a goal, a plan, a note."""

    name: str
    value: Any


class Intent(msgspec.Struct, frozen=True):
    """What a reply means: calls to run, the text for the person, thoughts, and directives.

    `ends_turn`: `reply` is the answer once the calls have run, whatever their results. The model sees `problems` with
    the results. `kept_text` replaces the reply's text in later contexts (None: all of it is kept). `quoted` holds the
    ids of calls that only repeat what the model has read.
    """

    calls: Sequence[ToolCall] = ()
    reply: str = ""
    thoughts: str = ""
    directives: Sequence[Directive] = ()
    ends_turn: bool = False
    problems: Sequence[str] = ()
    kept_text: str | None = None
    quoted: Set[str] = frozenset()


class StreamFilter(Protocol):
    """Takes the calls out of one reply while it streams."""

    def feed(self, piece: str) -> str:
        """The text to show now: the very same object where that is the whole piece.

        Text that is a call, or may become one, is held back. If it turns out to be none, it is shown when the reply is
        complete.
        """


class ActionFormat(Protocol):
    """How a model acts: how it learns which tools there are, and how its reply is read.

    `name` is its name in the configuration and in transcripts. `lists_tools`: `prepare` lists the tools in the prompt,
    so the prompt builder doesn't.
    """

    name: str
    lists_tools: bool

    def extra_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Tools of the format's own to offer with these, such as `$(help)`."""

    def prepare(self, request: ModelRequest, tools: Toolset) -> ModelRequest:
        """The request with the tools in it: as schemas, or as a grammar in the prompt."""

    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        """What the reply asks for. The same message always gives the same calls with the same, distinct ids.

        Only what is a quotation depends on what the model had `seen` before the reply: `quoted`, and a directive, which
        then becomes one named `quotation`.
        """

    def stream_filter(self, tools: Toolset) -> StreamFilter | None:
        """A filter for one streaming reply; None shows everything and takes calls back at the end."""

    def report(self, results: Sequence[ToolResult]) -> Sequence[Message]:
        """The results of one iteration as messages for the model; results of other formats' calls stay as they are."""

    def show(self, call: ToolCall, tools: Toolset) -> str:
        """The call in one line, as the model would write it."""
