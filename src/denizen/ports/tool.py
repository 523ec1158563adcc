"""Tools: what a model can do, and the context of a call."""

import difflib
import enum
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from denizen.config.rules import DeniedPaths
from denizen.entries import AnyEntry
from denizen.errors import ToolRefused
from denizen.messages import AssistantMessage, ToolCall, ToolResult
from denizen.ports.host import Answer
from denizen.ports.model import Schema
from denizen.runtime.clock import Clock
from denizen.text.estimate import estimate_text
from denizen.text.tool_aliases import resolve_alias


class Traits(enum.Flag):
    """What a tool does to the world, which decides about parallelism, checkpoints, resuming and approval.

    Decisions, "Traits decide, not names".

    What `DELEGATES` lets another turn work, whose calls are decided one by one. What `CHANGES` alters something
    elsewhere that no checkpoint brings back: it deletes a mail, pays, books.
    """

    NONE = 0
    READS = enum.auto()
    WRITES = enum.auto()
    EXECUTES = enum.auto()
    NETWORK = enum.auto()
    SENDS = enum.auto()
    PRIVATE = enum.auto()
    UNTRUSTED = enum.auto()
    REPEATABLE = enum.auto()
    DELEGATES = enum.auto()
    CHANGES = enum.auto()


EFFECTS: Final = Traits.WRITES | Traits.EXECUTES | Traits.SENDS | Traits.CHANGES
"""Traits of effects for which repetition or order matters."""

UNTRUSTED = "[untrusted]"
"""Put before a fact that was kept in sight of text that others wrote."""


class TurnEnded(Exception):
    """Raised to end the turn, also by `ToolContext.ask` until the person has answered: tools let it pass."""


async def _no_subagent(task: str, name: str) -> ToolResult:
    raise ToolRefused("no subagent can work here: do it yourself")


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a running tool gets from its turn.

    `call_id` is unique to the call: an idempotency key. `restricted`: paths outside the workspace are refused, but
    reading in the folders `readable` (the skills') is not. `private` is a folder that no tool touches: the home. `emit`
    shows a line of progress; `ask` asks the person. `spent_usd` is what the turn had spent. `entries` are the
    session's, up to the call's own reply; `commands` are the calls of a reply, by id, as the model writes them.
    `in_sight` are the traits of what the model sees; `said_by_user` says whether all the words of a sentence are the
    user's; `denied` are paths that the user's rules deny to this tool. Where
    `planned` is a dict, a `PlanningTool` puts there what files would hold (None: they would go), and writes nothing.
    `subagent` does a task in a turn of its own, by the definition of that name (empty: as this agent), and gives its
    result. `run_command` runs a command in a terminal of the host's (`TerminalHost`), where it has some.
    """

    session_key: str
    call_id: str
    workspace: Path
    clock: Clock
    emit: Callable[[str], None]
    ask: Callable[[str], Awaitable[Answer]]
    channel: str = ""
    chat: str = ""
    depth: int = 0
    spent_usd: float = 0.0
    restricted: bool = True
    readable: Sequence[Path] = ()
    private: Path | None = None
    entries: Sequence[AnyEntry] = ()
    commands: Callable[[AssistantMessage], Mapping[str, str]] = lambda reply: {}
    in_sight: Traits = Traits.NONE
    said_by_user: Callable[[str], bool] = lambda sentence: False
    denied: DeniedPaths = DeniedPaths()  # noqa: RUF009 (it never changes)
    planned: dict[str, bytes | None] | None = None
    subagent: Callable[[str, str], Awaitable[ToolResult]] = _no_subagent
    run_command: Callable[..., Awaitable[int | None]] | None = None


class Tool(Protocol):
    """Something the model can do. `shell_names` are its other names in `$(…)`."""

    name: str
    shell_names: Sequence[str]
    traits: Traits
    schema: Schema

    async def run(self, args: dict[str, Any], turn: ToolContext) -> ToolResult:
        """Do it. Wrong arguments, or a thing that can't be done, raise ToolRefused with words for the model."""


@runtime_checkable
class CheckedTool(Protocol):
    """A tool that can refuse a call by its arguments alone: no person is asked about such a call."""

    def check(self, args: dict[str, Any]) -> None:
        """Raises ToolRefused for arguments that `run` would refuse; reaches nothing, and changes nothing."""


@runtime_checkable
class CautiousTool(Protocol):
    """A tool some of whose calls need a person's yes, whatever its traits."""

    def needs_yes(self, args: dict[str, Any]) -> bool:
        """Whether a person must agree to a call with these arguments, unless a rule of the user's decides."""


@runtime_checkable
class ReplyingTool(Protocol):
    """A tool that answers in the chat of its turn, which needs no permission."""

    def is_reply(self, args: dict[str, Any], chat: tuple[str, str]) -> bool:
        """Whether a call with these arguments sends to that chat, a channel and its chat, and to no other."""


@runtime_checkable
class PlanningTool(Protocol):
    """A tool that, where it `plans`, can say what it would change in files (`ToolContext.planned`)."""

    plans: bool


@runtime_checkable
class DeferredTool(Protocol):
    """A tool that, where it is `deferred`, isn't shown to the model, which finds it by searching."""

    deferred: bool


@runtime_checkable
class CallingTool(Protocol):
    """A tool by which the model calls others, such as it has found by searching."""

    def called(self, args: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
        """The name and the arguments of the tool that is meant; None: that isn't clear."""


_HARMLESS = Traits.READS | Traits.REPEATABLE  # what may be done twice has changed nothing


def is_harmless(tool: Tool) -> bool:
    """Whether it only reads, or can safely run twice."""
    return bool(tool.traits & _HARMLESS) and not tool.traits & EFFECTS


def only_reads(tool: Tool) -> bool:
    """Whether it changes nothing and reaches nobody."""
    return is_harmless(tool) and not tool.traits & (Traits.NETWORK | Traits.DELEGATES)


class Toolset:
    """The tools of a turn, by name. `listed` are those that the model is shown, as `schemas`."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._by_shell_name = {name: tool for tool in self._tools.values() for name in tool.shell_names}
        self._calling = {name: tool for name, tool in self._tools.items() if isinstance(tool, CallingTool)}
        self.listed: tuple[Tool, ...] = tuple(
            tool for tool in self._tools.values() if not (isinstance(tool, DeferredTool) and tool.deferred)
        )
        self.schemas: tuple[Schema, ...] = tuple(tool.schema for tool in self.listed)

    @cached_property
    def tokens(self) -> int:
        """Estimated tokens of the tools in a request."""
        return estimate_text(msgspec.json.encode(self.schemas).decode())

    @cached_property
    def changing(self) -> frozenset[str]:
        """The names of those that can change something."""
        return frozenset(tool.name for tool in self if tool.traits & EFFECTS)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def get(self, name: str) -> Tool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def meant_by(self, call: ToolCall) -> ToolCall:
        """The call itself, or the one that a `CallingTool` makes, under the same id."""
        tool = self._calling.get(call.name)
        target = tool.called(call.args) if tool else None
        return ToolCall(call.id, *target) if target else call

    def traits_of(self, result: ToolResult) -> Traits:
        """The traits of a result: its tool's, and those that its `details` add.

        A fact that is marked as untrusted is so whichever tool shows it.
        """
        tool = self._tools.get(result.name)
        traits = tool.traits if tool else Traits.NONE
        traits |= Traits.UNTRUSTED if UNTRUSTED in result.text else Traits.NONE
        if isinstance(result.details, dict):
            traits |= Traits.UNTRUSTED if result.details.get("untrusted") is True else Traits.NONE
            traits |= Traits.PRIVATE if result.details.get("private") is True else Traits.NONE
        return traits

    def named(self, name: str) -> Tool | None:
        """The tool that `$(name …)` means: by its shell name first, then by its own."""
        return self._by_shell_name.get(name) or self._tools.get(name)

    def nearest(self, name: str) -> str:
        """The tool that other programs call by that name, or the one with the most similar name; empty: none."""
        return resolve_alias(name, self._tools) or next(iter(difflib.get_close_matches(name, self._tools, 1, 0.5)), "")
