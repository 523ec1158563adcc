"""The events of a turn, which `on_event` receives, and those of a model's stream.

Events are a side channel for screens and logs; the transcript is the record.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal

import msgspec

from denizen.errors import ErrorKind, ModelError
from denizen.messages import AssistantMessage, Message, ToolCall, Usage

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Out = TypeVar("Out", default=Any)
else:
    from typing import TypeVar

    Out = TypeVar("Out")  # before Python 3.13 it has no default

TurnStop = Literal["answered", "iteration_limit", "loop", "budget", "cancelled", "parked", "error"]
"""The reasons why a turn ends."""


class TextDelta(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="text_delta"):
    """Some more of the reply."""

    delta: str


class TextEnd(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="text_end"):
    """A text part is complete."""

    text: str


class ThinkingDelta(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="thinking_delta"):
    """Some more of the model's thoughts."""

    delta: str


class ThinkingEnd(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="thinking_end"):
    """A thinking part is complete."""

    text: str


class ToolCallDelta(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="toolcall_delta"):
    """Some more of a tool call's arguments, as JSON text."""

    id: str
    name: str
    delta: str


class ToolCallEnd(msgspec.Struct, frozen=True, tag_field="type", tag="toolcall_end"):
    """A tool call is complete."""

    call: ToolCall


class Retrying(msgspec.Struct, frozen=True, tag_field="type", tag="retrying"):
    """The call failed and is made again after `delay` seconds; `withdrawn` is the text that had streamed before.

    The other fields are those of `Retry`.
    """

    attempt: int
    reason: ErrorKind
    profile_id: str
    delay: float = 0.0
    withdrawn: str = ""
    model: str = ""
    error: str = ""
    asked: bool = False


class Finished(msgspec.Struct, frozen=True, tag_field="type", tag="done"):
    """The last event of a stream that went well."""

    message: AssistantMessage


class Failed(msgspec.Struct, frozen=True, tag_field="type", tag="error"):
    """The last event of a stream that did not; the failure is data, never raised."""

    error: ModelError


Delta = TextDelta | TextEnd | ThinkingDelta | ThinkingEnd | ToolCallDelta | ToolCallEnd
StreamEvent = Delta | Retrying | Finished | Failed


class RunResult(msgspec.Struct, Generic[Out], frozen=True):
    """One finished turn; `RunResult[Quote]` where an answer of that type was asked for.

    `messages` are the ones this turn added, the user's first. `usage` sums all calls, `last_call_usage` is the last
    call's alone: the size of the context. `output` is the typed answer where one was asked for. `retries` counts
    model calls that had to be made again. `error` says more where a limit, a loop, the budget or an error ended it, and
    where the answer was cut by the length limit, refused or is empty.
    """

    reply: str
    output: Out = None  # pyrefly: ignore[bad-assignment]  # where no type was asked for
    iterations: int = 0
    usage: Usage = Usage()
    last_call_usage: Usage = Usage()
    retries: int = 0
    stop_reason: TurnStop = "answered"
    messages: Sequence[Message] = ()
    session_key: str = ""
    error: str = ""


class LlmStart(msgspec.Struct, frozen=True, tag_field="type", tag="llm_start"):
    """A model call begins; `iteration` counts from 1."""

    iteration: int
    model: str = ""


class LlmStream(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="llm_stream"):
    """A piece of the model's answer arrived."""

    event: Delta


class LlmEnd(msgspec.Struct, frozen=True, tag_field="type", tag="llm_end"):
    """The model's answer is complete."""

    message: AssistantMessage


class ToolStart(msgspec.Struct, frozen=True, tag_field="type", tag="tool_start"):
    """A tool begins."""

    tool_name: str
    tool_call_id: str
    args: dict[str, Any] = {}


class ToolUpdate(msgspec.Struct, frozen=True, tag_field="type", tag="tool_update"):
    """A running tool printed something."""

    tool_name: str
    tool_call_id: str
    text: str


class ToolEnd(msgspec.Struct, frozen=True, tag_field="type", tag="tool_end"):
    """A tool ended after `duration_ms` milliseconds. `summary` is one line for the screen, `text` all it gave."""

    tool_name: str
    tool_call_id: str
    duration_ms: float
    is_error: bool
    summary: str = ""
    for_user: str | None = None
    details: Any = None
    text: str = ""


class Retry(msgspec.Struct, frozen=True, tag_field="type", tag="retry"):
    """A model call is made again: attempt number, why, with which auth profile, after how many seconds.

    Attempt 0 is the first, which waits for a profile that failed in an earlier call. `error` is the failure in the
    provider's words. `asked`: the provider asks for that wait; else it is the profile's cool-down.
    """

    attempt: int
    reason: ErrorKind
    profile_id: str
    delay: float = 0.0
    model: str = ""
    error: str = ""
    asked: bool = False

    @property
    def words(self) -> str:
        """The failure, the time of the next attempt, and who asked for the wait."""
        why = self.error or self.reason.replace("_", " ")
        wait = f" in {self.delay:.0f} s ({'the provider asks for that' if self.asked else 'its cool-down'})"
        again = "trying again" if self.attempt else "failed before, trying again"
        return f"{why}: {again}{wait if self.delay >= 1 else ''}"


class Compacted(msgspec.Struct, frozen=True, tag_field="type", tag="compaction"):
    """The context was made smaller: messages before and after."""

    old_count: int
    new_count: int


class Withdrawn(msgspec.Struct, frozen=True, tag_field="type", tag="withdrawn"):
    """This text, already shown, doesn't count: its stream died, or it was no part of the reply after all."""

    text: str


class TurnParked(msgspec.Struct, frozen=True, tag_field="type", tag="parked"):
    """The turn waits for a person and continues once the question is answered."""

    session_key: str
    tool_call_id: str
    question: str


class Notice(msgspec.Struct, frozen=True, tag_field="type", tag="notice"):
    """Something the user should know."""

    text: str
    level: Literal["info", "warning", "error"] = "info"


class Done(msgspec.Struct, frozen=True, tag_field="type", tag="done"):
    """The turn is over; always the last event."""

    result: RunResult


RunEvent = (
    LlmStart
    | LlmStream
    | LlmEnd
    | ToolStart
    | ToolUpdate
    | ToolEnd
    | Retry
    | Compacted
    | Withdrawn
    | TurnParked
    | Notice
    | Done
)
