"""The seams: the protocols that models, contexts, actions, tools, sessions and hosts fulfil, and their types."""

import difflib
import enum
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from denizen.clock import Clock
from denizen.config.rules import DeniedPaths
from denizen.entries import AnyEntry, CompactionEntry
from denizen.events import RunEvent, StreamEvent
from denizen.messages import AssistantMessage, Message, ToolCall, ToolResult, Usage
from denizen.names import meant_by
from denizen.seen import SeenText
from denizen.stretch import Stretch

# Models


class Schema(msgspec.Struct, frozen=True):
    """What a model is told of a tool: its name, what it does, and the JSON schema of its arguments."""

    name: str
    description: str
    parameters: dict[str, Any]


Level = Literal["none", "low", "medium", "high"]
"""How much a model thinks before it answers."""

Reasoning = Level | int
"""The same, or the tokens that it may take for that."""


class ModelRequest(msgspec.Struct, frozen=True):
    """One model call. `messages` may be the context's own list, which grows later: copy what you keep.

    `options` (temperature, top_p, …; `extra_body`) go to the provider as they are; `stream` asks for deltas;
    `output_schema` is the JSON schema that the final answer must fulfil, for providers that can be told. `tokens` is
    how large the call is, as far as is known (0: not at all): `max_tokens` is fitted to the room that it leaves.
    `reasoning` None leaves it to the provider how much the model thinks. `answers_now`: no more tools are needed, and
    they are left out where only then the answer can be held to its schema.
    """

    messages: Sequence[Message]
    system: str = ""
    tools: Sequence[Schema] = ()
    max_tokens: int = 8192
    options: Mapping[str, Any] = {}
    stream: bool = False
    session_key: str = ""
    output_schema: dict[str, Any] | None = None
    tokens: int = 0
    reasoning: Reasoning | None = None
    answers_now: bool = False


class Limits(msgspec.Struct, frozen=True):
    """What a model takes: tokens it sees, tokens it can answer. What isn't known limits nothing."""

    window: int = 200_000
    max_output: int = 200_000


class Model(Protocol):
    """Who thinks."""

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """The answer as it comes; ends with exactly one Finished or Failed; a provider's failure never raises."""
        ...


@runtime_checkable
class KnownModel(Model, Protocol):
    """A model that can tell about itself.

    `name` is `provider:model`; `local` ones run on this machine, cost nothing, and may see little.
    """

    name: str
    local: bool

    def limits(self) -> Limits:
        """Its context window and longest answer; may load the catalogue."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...


AskModel = Callable[[Sequence[Message], str], Awaitable[AssistantMessage]]
"""Asks the turn's model for something on the side (messages, system prompt); raises ModelError."""


# Tools


class Traits(enum.Flag):
    """What a tool does to the world. They decide parallelism, checkpoint, resume and approval (design)."""

    NONE = 0
    READS = enum.auto()
    WRITES = enum.auto()
    EXECUTES = enum.auto()
    NETWORK = enum.auto()
    SENDS = enum.auto()
    PRIVATE = enum.auto()
    UNTRUSTED = enum.auto()
    REPEATABLE = enum.auto()


class Answer(msgspec.Struct, frozen=True):
    """A person's answer to a question: to `call_id`, whether it may run, words, and for how long it holds.

    `unasked`: nobody was asked, or nobody answered, and `text` says so.
    """

    call_id: str
    allow: bool
    text: str = ""
    scope: Literal["once", "session", "always"] = "once"
    unasked: bool = False


class Parked(msgspec.Struct, frozen=True):
    """Nobody is there to answer: the turn waits, durably."""


class Ask(msgspec.Struct, frozen=True):
    """A question to the person: may this call run (`tool_name`, `args`), or any other (`tool_name` empty).

    `quotation`: the call repeats what the model has read, so that a yes given beforehand doesn't count.
    `diff` is all that the call would change in files, where that is known beforehand.
    """

    call_id: str
    question: str
    tool_name: str = ""
    args: dict[str, Any] = {}
    quotation: bool = False
    diff: str = ""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a running tool is lent by its turn.

    `call_id` is unique to the call: an idempotency key. `restricted`: paths outside the workspace are refused, but
    reading in the folders `readable` (the skills') is not. `private` is a folder that no tool touches: the home.
    `emit` shows a line of progress; `ask` asks the person. `entries` are the session's, up to the call's own reply;
    `commands` are the calls of a reply, by id, as the model writes them. `in_sight` are the traits of what the model
    sees; `denied` are paths that the user's rules deny to this tool. Where `planned` is a dict, a
    `PlanningTool` puts there what files would hold (None: they would go), and writes nothing.
    """

    session_key: str
    call_id: str
    workspace: Path
    clock: Clock
    emit: Callable[[str], None]
    ask: Callable[[str], Awaitable[Answer]]
    channel: str = ""
    chat: str = ""
    restricted: bool = True
    readable: Sequence[Path] = ()
    private: Path | None = None
    entries: Sequence[AnyEntry] = ()
    commands: Callable[[AssistantMessage], Mapping[str, str]] = lambda reply: {}
    in_sight: Traits = Traits.NONE
    denied: DeniedPaths = DeniedPaths()  # noqa: RUF009 (it never changes)
    planned: dict[str, bytes | None] | None = None


class Tool(Protocol):
    """Something the model can do. `shell_names` are its other names in `$(…)`."""

    name: str
    shell_names: Sequence[str]
    traits: Traits
    schema: Schema

    async def run(self, args: dict[str, Any], turn: ToolContext) -> ToolResult:
        """Do it. Wrong arguments, or a thing that can't be done, raise ToolRefused with words for the model."""
        ...


@runtime_checkable
class CheckedTool(Tool, Protocol):
    """A tool that can tell from a call's arguments alone that it would refuse: no person is asked about such a call."""

    def check(self, args: dict[str, Any]) -> None:
        """Raises ToolRefused for arguments that `run` would refuse; reaches nothing, and changes nothing."""
        ...


@runtime_checkable
class PlanningTool(Tool, Protocol):
    """A tool that, where it `plans`, can say what it would change in files (`ToolContext.planned`)."""

    plans: bool


class Toolset:
    """The tools of a turn, by name."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._by_shell_name = {name: tool for tool in self._tools.values() for name in tool.shell_names}
        self.schemas: tuple[Schema, ...] = tuple(tool.schema for tool in self._tools.values())

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def get(self, name: str) -> Tool | None:
        """The tool of that name."""
        return self._tools.get(name)

    def traits_of(self, result: ToolResult) -> Traits:
        """What a result holds: as its tool's traits say, and untrusted text where its `details` say so."""
        tool = self._tools.get(result.name)
        says_so = isinstance(result.details, dict) and result.details.get("untrusted") is True
        return (tool.traits if tool else Traits.NONE) | (Traits.UNTRUSTED if says_so else Traits.NONE)

    def named(self, name: str) -> Tool | None:
        """The tool that `$(name …)` means: by its shell name first, then by its own."""
        return self._by_shell_name.get(name) or self._tools.get(name)

    def nearest(self, name: str) -> str:
        """The tool that does what elsewhere has that name, else the one whose name is most like it; or none: empty."""
        return meant_by(name, self._tools) or next(iter(difflib.get_close_matches(name, self._tools, 1, 0.5)), "")


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something kept beyond the session.

    `id` names it (`p12`: of the project, `u3`: of the user; empty: a line of the notes). `weight` (0 to 1) says how
    much it matters, `at` when it was last said, `source` in which session, or in which file. `untrusted`: it was kept
    in sight of text that others wrote.
    """

    text: str
    id: str = ""
    context: str = ""
    weight: float = 0.5
    source: str = ""
    at: datetime | None = None
    untrusted: bool = False

    @property
    def marked(self) -> str:
        """The text, with a word before it where it is untrusted."""
        return f"{UNTRUSTED} {self.text}" if self.untrusted else self.text


UNTRUSTED = "[untrusted]"
"""What stands before a fact that was kept in sight of text that others wrote."""


def traits_of_facts(lines: object) -> Traits:
    """What recalled facts hold, by the lines in which the model is told of them."""
    marked = isinstance(lines, list) and any(str(line).startswith(UNTRUSTED) for line in lines)
    return Traits.PRIVATE | Traits.UNTRUSTED if marked else Traits.PRIVATE


Scope = Literal["project", "user"]
"""Where a fact holds: in this project, or wherever the user works."""


class Memory(Protocol):
    """What the agent keeps beyond the session."""

    async def remember(
        self,
        text: str,
        *,
        context: str = "",
        weight: float = 0.5,
        scope: Scope = "project",
        source: str = "",
        untrusted: bool = False,
    ) -> str:
        """Keep a fact, once; says where it went; `untrusted` stays with it.

        Raises ToolRefused, or DenizenError when the disk refuses.
        """
        ...

    async def recall(self, query: str, limit: int = 10) -> Sequence[Fact]:
        """The facts that fit best, best first; for an empty query the latest. Raises DenizenError."""
        ...

    async def forget(self, what: str) -> str:
        """Forget the fact of that id, that text, or the only one that fits; says which. Raises ToolRefused."""
        ...


class Sandboxed(msgspec.Struct, frozen=True):
    """A command ready to start: its arguments and its whole environment.

    `notice` is what the user and the model should know about where it runs; `bash` says it once a session.
    `afterwards` is called when it is over, and returns what to add to its output.
    """

    argv: Sequence[str]
    environ: Mapping[str, str]
    notice: str = ""
    afterwards: Callable[[], str] | None = None


class Sandbox(Protocol):
    """Where commands run. `promises` says what it holds, in a sentence; `confines` is False where it holds nothing."""

    name: str
    promises: str
    confines: bool

    def wrap(self, argv: Sequence[str], *, workspace: Path, network: bool = False) -> Sandboxed:
        """The command that runs `argv` inside, with `workspace` writable."""
        ...


# Checkpoints


class Checkpoints(Protocol):
    """What the workspace was: snapshots of its files, outside of it."""

    async def snapshot(self, label: str = "") -> str:
        """Keep the files as they are; the same files give the same id. Raises DenizenError."""
        ...

    async def ours_alone(self, done: Stretch) -> Collection[str]:
        """The paths that the agent changed. Raises DenizenError where somebody else changed one of them meanwhile."""
        ...

    async def restore(self, snapshot: str, *, expect: str = "", force: bool = False, only: Collection[str] = ()) -> str:
        """Make the files what they were, or `only` these paths; returns the id of what they were until now.

        Raises DenizenError where they differ from the snapshot `expect`, as the user changed them, unless forced.
        """
        ...


# Actions

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


# Sessions


class Session(Protocol):
    """One conversation, open for writing by this process alone.

    `entries` are those from the first to the head, oldest first: the same list while it grows, another when the head
    moves; opened again, a session may have the list that it was closed with, where nobody wrote since. `head` is the
    last one's id ("" when empty). Weak references to a session are taken.
    """

    key: str
    head: str
    entries: Sequence[AnyEntry]
    warnings: Sequence[str]

    @property
    def moved(self) -> bool:
        """Whether the head was moved here, or the session forked, and nothing was written since.

        Calls left open then belong to another branch.
        """
        ...

    async def append(self, entry: AnyEntry, *, expect_head: str | None = None) -> str:
        """Write the entry behind the head and return its id; on disk on return.

        Messages of the user, `started`, `parked` and `answer` are synced, too: they survive the machine's death, and
        with them it is noticed that the lock was lost. Raises SessionError then, and for all that follows, when the
        head isn't `expect_head`, and when the disk refuses.
        """
        ...

    async def move_head(self, to: str) -> None:
        """Continue from entry `to`; nothing is deleted."""
        ...

    async def sync(self) -> None:
        """All that was written survives the machine's death."""
        ...

    async def close(self) -> None:
        """Give the lock back."""
        ...


class SessionInfo(msgspec.Struct, frozen=True):
    """A line of the index. `updated` is seconds since the epoch; `tokens` is the context after the last call.

    `stop_reason` is how the last turn ended, or `parked` or `unfinished` where it hasn't.
    """

    key: str
    title: str = ""
    workspace: str = ""
    profile: str = ""
    updated: float = 0.0
    bytes: int = 0
    model: str = ""
    tokens: int = 0
    stop_reason: str = ""
    cost_usd: float = 0.0


class SessionStore(Protocol):
    """Where sessions last."""

    async def open(self, key: str, *, workspace: str = "", profile: str = "") -> Session:
        """The session, open for writing; made if new. Raises SessionError when another process has it."""
        ...

    async def read(self, key: str) -> Sequence[AnyEntry]:
        """The entries from the first to the head, without a lock. Raises SessionError for an unknown key."""
        ...

    async def fork(self, key: str, to: str, *, at: str = "") -> None:
        """A new session `to` that begins with all of `key` up to entry `at` (default: its head)."""
        ...

    async def list(self) -> Sequence[SessionInfo]:
        """All sessions, the latest first."""
        ...

    async def remove(self, key: str) -> None:
        """Delete a session for good. Raises SessionError while a process has it open."""
        ...


# Contexts

SURELY_HELD = 4_000
"""Tokens that every hosted model sees: the catalogue needn't be loaded to know."""


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
        return self.model.limits().window

    @property
    def room(self) -> int:
        """Tokens that are left for messages between the prompt and the longest answer, or a quarter of the window."""
        window = self.window
        return window - self.prompt - min(self.answer, window // 4)

    def holds(self, tokens: int) -> bool:
        """Whether the model sees that many and has room for its answer; hosted models hold few without a look-up."""
        if tokens <= SURELY_HELD and not self.model.local:
            return True
        return tokens <= self.prompt + self.room


class ContextPolicy(Protocol):
    """What the model sees."""

    def observe(self, item: AnyEntry) -> None:
        """Take in one more entry; costs what is new, not what is old."""
        ...

    def assemble(self, view: View) -> Sequence[Message]:
        """The messages of the next call."""
        ...

    def tokens(self, view: View) -> int:
        """How large the next call is with its prompt, as far as can be told before it is made."""
        ...

    async def relieve(self, view: View, level: int, ask: AskModel) -> CompactionEntry | None:
        """The entry that makes the context smaller; None: it can't. Level 1 summarises, 2 truncates, 3 keeps less."""
        ...


@runtime_checkable
class TraitedContext(ContextPolicy, Protocol):
    """A context policy that lets results go out of sight; with any other, all that a session saw stays in sight."""

    @property
    def traits(self) -> Traits:
        """The traits of the results that the model sees."""
        ...


# Drivers


class Iteration(msgspec.Struct, frozen=True):
    """One model call of a turn and what came of it: the calls asked for, and their results in the same order."""

    text: str
    calls: Sequence[ToolCall]
    results: Sequence[ToolResult]


class Proceed(msgspec.Struct, frozen=True):
    """Ask the model; `text` is told to it first."""

    text: str = ""


class Backtrack(msgspec.Struct, frozen=True):
    """Return the files to the last checkpoint before the `iterations` that led nowhere; `text` says what was learnt."""

    text: str
    iterations: int = 1


class Escalate(msgspec.Struct, frozen=True):
    """Ask the person, where one is there, and tell the model the answer; else tell it `otherwise`."""

    question: str
    otherwise: str = ""


class GiveUp(msgspec.Struct, frozen=True):
    """End the turn as a loop, for this reason."""

    reason: str


Action = Proceed | Backtrack | Escalate | GiveUp


class Driver(Protocol):
    """What to do before the next model call of a turn (seed 001, "Driver Protocol").

    There is one for each turn. It is shown the turn's iterations in order, those of an earlier process too, so that it
    comes to the same state again: it keeps no other memory.
    """

    def decide(self, view: View) -> Action:
        """The next step."""
        ...

    def observe(self, iteration: Iteration) -> None:
        """Take in what the last one gave."""
        ...


# Hosts


class Steer(msgspec.Struct, frozen=True):
    """Say something to the agent while it works; heard before its next model call."""

    text: str


class FollowUp(msgspec.Struct, frozen=True):
    """Say something when the agent is done; the turn then goes on with it."""

    text: str


class Interrupt(msgspec.Struct, frozen=True):
    """Drop the calls that haven't run and go on with this instead."""

    text: str


class Stop(msgspec.Struct, frozen=True):
    """End the turn: a model call at once, a running tool as soon as it is done."""


Control = Steer | FollowUp | Interrupt | Stop | Answer


class TurnIO(Protocol):
    """What a host lends to a turn."""

    def emit(self, event: RunEvent) -> None:
        """Something happened."""
        ...

    def controls(self) -> Sequence[Control]:
        """What the person did since the last look."""
        ...

    async def ask(self, request: Ask) -> Answer | Parked:
        """Ask the person."""
        ...
