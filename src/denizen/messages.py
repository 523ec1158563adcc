"""The messages of a session: their parts, and what they cost.

Every struct is immutable and encodes to JSON with a `type` field that tells it apart.
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, TypeVar

import msgspec

ATTACHED = ("\n\n<file path=", "\n\n<stdin>", "\n\n<prompt from=")
"""Beginnings of the parts of a user's message that hold a file or piped input, not the user's own words."""

_OUTSIDE = re.compile(r'\n\n<(?:file path="(?:/|[a-z]+:)|stdin>|prompt from=)')

_Number = TypeVar("_Number", int, float)


class Text(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="text"):
    """Words."""

    text: str


class Thinking(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="thinking"):
    """A model's thoughts before it spoke; `signature` goes back to its provider unchanged.

    A signature of a format that isn't its provider's usual one begins with `format:` here.
    """

    text: str
    signature: str = ""


class Image(msgspec.Struct, frozen=True, gc=False, tag_field="type", tag="image", omit_defaults=True):
    """A picture: its raw bytes and their media type (`image/png`).

    `outside`: it was attached, and came from elsewhere than the workspace.
    """

    media_type: str
    data: bytes
    outside: bool = False


class Document(msgspec.Struct, frozen=True, tag_field="type", tag="document", omit_defaults=True):
    """A file that was attached: its raw bytes, their media type (`application/pdf`, `text/plain`), and its name.

    `text` is what could be read of a PDF document when it was attached, and `pages` how many it has (0: not known):
    `denizen.text.documents` reads them. `outside`: it came from elsewhere than the workspace, whatever its name is.
    """

    media_type: str
    data: bytes
    name: str
    text: str = ""
    pages: int = 0
    outside: bool = False


_File = TypeVar("_File", bound=Image | Document)


def from_outside(attached: _File) -> _File:
    """The attachment, marked as coming from outside the workspace."""
    return msgspec.structs.replace(attached, outside=True)


def is_from_outside(part: object) -> bool:
    """Whether a part of a user's message holds others' text: piped input, a server's prompt, a file from elsewhere."""
    match part:
        case Text(text):
            return _OUTSIDE.match(text) is not None
        case Image(outside=outside):
            return outside
        case Document(name=name, outside=outside):
            return outside or name.startswith("/")
        case _:
            return False


class _Exact(msgspec.Struct, frozen=True, tag_field="type"):
    """Equal only to the very same, to the letter of its JSON: `true` is not `1`, nor is `1.0`."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and repr(other) == repr(self)

    def __hash__(self) -> int:
        return hash(repr(self))


class ToolCall(_Exact, frozen=True, tag="tool_call", omit_defaults=True):
    """A model's wish to run the tool `name`; the result carries the same `id`.

    In a session the `id` is Denizen's, and `wire_id` the provider's, which only requests to a provider carry.
    """

    id: str
    name: str
    args: dict[str, Any]
    wire_id: str = ""

    @property
    def sent_id(self) -> str:
        """The id that providers get."""
        return self.wire_id or self.id


class Opaque(_Exact, frozen=True, tag="opaque", omit_defaults=True):
    """A block that only its provider understands: kept, and sent back to that provider unchanged.

    `provider`: its name; `name/format` where the wire format isn't its usual one, as a proxy may have several.
    `untrusted`: it shows that a tool of the provider's own gave the model what others wrote, as citations do.
    """

    provider: str
    data: Any
    untrusted: bool = False


UserPart = Text | Image | Document
AssistantPart = Text | Thinking | ToolCall | Opaque
StopReason = Literal["end", "tool_calls", "length", "refusal", "error", "aborted"]


class Usage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens and US dollars of one call, or of a turn; None if the provider doesn't say.

    `input` excludes the tokens read from and written to the provider's cache. In `RunResult.usage` the cache
    fields are those of the last call: every call reports about the whole context there (decisions, "Usage of a turn").
    `reasoning` is the part of `output` that was thought, `cache_write_1h` the part of `cache_write` kept for an hour.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cost_usd: float | None = None
    reasoning: int | None = None
    cache_write_1h: int | None = None

    @property
    def context(self) -> int:
        """Tokens of the whole context after the call: what was sent, cached or not, and what came back."""
        return self.sent + (self.output or 0)

    @property
    def sent(self) -> int:
        """Tokens of what was sent, cached or not."""
        return (self.input or 0) + (self.cache_read or 0) + (self.cache_write or 0)

    def plus(self, call: "Usage") -> "Usage":
        """This sum with one more call: input, output and cost add up, the cache fields are the call's."""
        return Usage(
            _add(self.input, call.input),
            _add(self.output, call.output),
            call.cache_read,
            call.cache_write,
            _add(self.cost_usd, call.cost_usd),
            _add(self.reasoning, call.reasoning),
            call.cache_write_1h,
        )

    def joined(self, rest: "Usage") -> "Usage":
        """The usage of one message that took two calls: all of it adds up."""
        return Usage(*(_add(getattr(self, name), getattr(rest, name)) for name in self.__struct_fields__))


def _add(a: _Number | None, b: _Number | None) -> _Number | None:
    return b if a is None else a if b is None else a + b


def _parts(message: "UserMessage | AssistantMessage | ToolResult") -> None:
    if isinstance(message.content, str):
        msgspec.structs.force_setattr(message, "content", [Text(message.content)])


def _text(parts: Sequence[Any]) -> str:
    if len(parts) == 1 and type(parts[0]) is Text:  # nearly always
        return parts[0].text
    return "".join([part.text for part in parts if type(part) is Text])


class UserMessage(msgspec.Struct, frozen=True, tag_field="type", tag="user", omit_defaults=True):
    """A message from a person or a host. `id` detects a repeated delivery; `at` is when it was said (aware)."""

    content: list[UserPart]
    id: str = ""
    at: datetime | None = None

    __post_init__ = _parts

    @property
    def text(self) -> str:
        """The text."""
        return _text(self.content)


class AssistantMessage(msgspec.Struct, frozen=True, tag_field="type", tag="assistant", omit_defaults=True):
    """A model's answer: its parts in the order they came, and why it stopped.

    In a session, one that asks for calls has an `id`: those in its text get theirs by it.
    """

    content: list[AssistantPart]
    model: str = ""
    usage: Usage = Usage()
    stop_reason: StopReason = "end"
    id: str = ""

    __post_init__ = _parts

    @property
    def text(self) -> str:
        """The text, without thoughts and calls."""
        return _text(self.content)

    @property
    def stem(self) -> str:
        """The prefix for ids of calls in its text: its own id, in older transcripts its usage."""
        counts = (f"{name}={getattr(self.usage, name)}" for name in Usage.__struct_fields__[:5])
        return self.id or f"Usage({', '.join(counts)})"

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tools it asks for, in order."""
        return [part for part in self.content if type(part) is ToolCall]


class ToolResult(msgspec.Struct, frozen=True, tag_field="type", tag="tool", omit_defaults=True):
    """The result of the call `call_id`.

    `content` is for the model, `for_user` for the person (None: nothing), `details` for the screen.
    `silent`: nothing is shown; `is_async`: the work goes on and reports later; `ends_turn`: no further model call.
    `wire_id` is that of the call.
    """

    call_id: str
    name: str
    content: list[UserPart]
    is_error: bool = False
    silent: bool = False
    is_async: bool = False
    ends_turn: bool = False
    for_user: str | None = None
    details: Any = None
    wire_id: str = ""

    __post_init__ = _parts

    @property
    def sent_id(self) -> str:
        """The id of the call that providers get."""
        return self.wire_id or self.call_id

    @property
    def text(self) -> str:
        """The text."""
        return _text(self.content)

    @property
    def edits(self) -> list[dict[str, Any]]:
        """The file edits in its `details`: each with `path`, `diff`, and the lines `added`, `removed`."""
        files = self.details.get("files") if isinstance(self.details, dict) else None
        several = files if isinstance(files, list) else [self.details]
        return [file for file in several if isinstance(file, dict) and {"path", "diff", "added", "removed"} <= {*file}]


Message = UserMessage | AssistantMessage | ToolResult
