"""The lines of a transcript: what lasts of a session.

Each entry names its parent, so that a transcript is a tree; the head is where the conversation continues
(decisions, "Storage"). A session gives an entry its `id`, `parent` and `at` when it is appended.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, TypeVar

import msgspec

from denizen.events import TurnStop
from denizen.messages import AssistantMessage, ToolResult, Usage, UserMessage

_Kind = TypeVar("_Kind")


class Entry(msgspec.Struct, frozen=True, tag_field="type", kw_only=True, omit_defaults=True):
    """The fields of every entry: its `id` in the session, the entry it follows, the time of writing (aware, UTC)."""

    id: str = ""
    parent: str = ""
    at: datetime | None = None


class SessionEntry(Entry, frozen=True, kw_only=True, tag="session", omit_defaults=False):
    """The first line: which session this is, the format's version, and where it works."""

    version: int = 1
    key: str
    workspace: str = ""
    profile: str = ""
    forked_from: str = ""


class UserEntry(Entry, frozen=True, kw_only=True, tag="user"):
    """A message to the agent."""

    message: UserMessage


class AssistantEntry(Entry, frozen=True, kw_only=True, tag="assistant"):
    """A model's whole answer."""

    message: AssistantMessage


class StartedEntry(Entry, frozen=True, kw_only=True, tag="started"):
    """A call whose effect can't be repeated is about to run."""

    call_id: str
    name: str


class ToolEntry(Entry, frozen=True, kw_only=True, tag="tool"):
    """The result of a call."""

    message: ToolResult


class CompactionEntry(Entry, frozen=True, kw_only=True, tag="compaction"):
    """The context was made smaller.

    The entries from `first` to `last`, both included, are replaced by `summary` (empty: they were cut without one).
    `truncate_over`: tool results longer than this many characters, up to here, are shortened to it.
    It counts only while `last` is an ancestor of the head. `usage` is what making the summary took.
    """

    first: str = ""
    last: str = ""
    summary: str = ""
    truncate_over: int = 0
    old_count: int = 0
    new_count: int = 0
    usage: Usage = Usage()

    @property
    def unsummarised(self) -> bool:
        """Whether messages were cut off without a summary."""
        return not (self.summary or self.truncate_over)


class NoteEntry(Entry, frozen=True, kw_only=True, tag="note"):
    """Something the agent wants to keep in mind."""

    text: str


class CheckpointEntry(Entry, frozen=True, kw_only=True, tag="checkpoint"):
    """A snapshot of the workspace."""

    snapshot: str
    label: str = ""


CONTENT_REFUSED = "content_refused"
"""The state which says that the provider refused what came after the last reply: it is left out from then on."""

EARLIER = "earlier"
"""The state which begins a talk anew at the root, and holds the earlier ones of the session."""


class StateEntry(Entry, frozen=True, kw_only=True, tag="state"):
    """A named value that the session carries: a goal, a plan, an approval, the auth profile in use."""

    name: str
    value: Any

    def read(self, kind: type[_Kind]) -> _Kind | None:
        """The value as that type; None if it isn't one, because of damage or another version."""
        try:
            return msgspec.convert(self.value, kind)
        except msgspec.ValidationError:
            return None


class SystemEntry(Entry, frozen=True, kw_only=True, tag="system"):
    """A message from the system (a subagent's result), which the model sees in its next turn.

    `by_operator`: in the operator's words, as a heartbeat's; a call may repeat them. `message_id` is the id of the
    message that brought it through a queue, if one did.
    """

    text: str
    by_operator: bool = False
    message_id: str = ""


class ParkedEntry(Entry, frozen=True, kw_only=True, tag="parked"):
    """The call `name` with these arguments waits for a person's answer, until `until` at most."""

    call_id: str
    question: str
    until: datetime | None = None
    name: str = ""
    args: dict[str, Any] = {}


class AnswerEntry(Entry, frozen=True, kw_only=True, tag="answer"):
    """An answer to a parked call; `unasked`: no person gave it, and `text` says why."""

    call_id: str
    allow: bool
    text: str = ""
    scope: Literal["once", "session", "always"] = "once"
    unasked: bool = False


class HeadEntry(Entry, frozen=True, kw_only=True, tag="head"):
    """The head was moved: what follows continues from entry `to`."""

    to: str


class EndEntry(Entry, frozen=True, kw_only=True, tag="end"):
    """A turn is over, and why."""

    stop_reason: TurnStop
    usage: Usage = Usage()
    last_call_usage: Usage = Usage()
    iterations: int = 0
    retries: int = 0
    model: str = ""
    error: str = ""


AnyEntry = (
    SessionEntry
    | UserEntry
    | AssistantEntry
    | StartedEntry
    | ToolEntry
    | CompactionEntry
    | NoteEntry
    | CheckpointEntry
    | StateEntry
    | SystemEntry
    | ParkedEntry
    | AnswerEntry
    | HeadEntry
    | EndEntry
)


def header_of(entries: Iterable[AnyEntry]) -> SessionEntry:
    """The session's header; an empty one if it is lost."""
    return next((entry for entry in entries if isinstance(entry, SessionEntry)), SessionEntry(key=""))
