"""The state of a session, kept in step with its entries."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any

import msgspec

from denizen.config.settings import Rule
from denizen.engine.drivers import LoopGuardedDriver
from denizen.engine.loops import Loops
from denizen.engine.record import AgentRecord
from denizen.engine.user_words import UserWords
from denizen.entries import (
    AnswerEntry,
    AnyEntry,
    AssistantEntry,
    CompactionEntry,
    EndEntry,
    ParkedEntry,
    StateEntry,
    SystemEntry,
    ToolEntry,
    UserEntry,
)
from denizen.messages import (
    ATTACHED,
    AssistantMessage,
    Document,
    Message,
    Opaque,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    UserMessage,
    is_from_outside,
)
from denizen.ports.actions import NOTHING_SEEN, ActionFormat, Intent
from denizen.ports.context import TraitedContext, WorldLine
from denizen.ports.driver import Iteration
from denizen.ports.memory import traits_of_facts
from denizen.ports.model import KnownModel
from denizen.ports.session import Session
from denizen.ports.tool import Toolset, Traits
from denizen.text.documents import text_in
from denizen.text.estimate import estimate_text
from denizen.text.seen import SeenText

PROMPT = "prompt"
"""The state entry that holds the system prompt of a session."""

OPTIONS = "options"
"""The state entry that holds the options of the turns from here on, where they aren't those of the turns before."""

APPROVED = "approved"
"""The state entry that holds a rule which the user approved for the session."""

SUBAGENT_OF = "subagent_of"
"""The state entry of a subagent's session that names the session and the call which it works for."""

IN_SIGHT = "in_sight"
"""The state entry that holds what the session was given from another one: private data, others' text."""

RECALLED = "recalled"
"""The state entry that holds what earlier sessions left for a task, as lines: the user's private data."""

MODEL = "model"
"""The state entry that names the model of the session's turns from here on, where it isn't the agent's."""

UNSUMMARISED = "unsummarised"
"""The state entry that holds how large the context was, in tokens, when no summary of it could be made."""


_PARTS = attrgetter("actions", "formats", "tools", "new_context", "new_driver")
"""The fields of an agent that a session's state depends on."""


class SessionPrompt(msgspec.Struct, frozen=True):
    """The value of a `prompt`: its text, what it was made for, and the action format it was made with.

    `private`: it holds the user's own words; `untrusted`: and others', of which `quoted` is as they worded it.
    """

    text: str
    made_for: list[Any] = msgspec.field(name="for")
    actions: str = ""
    private: bool = False
    untrusted: bool = False
    quoted: Sequence[str] = ()


class SubagentOf(msgspec.Struct, frozen=True):
    """The value of `subagent_of`."""

    session: str
    call_id: str


class InSight(msgspec.Struct, frozen=True, omit_defaults=True):
    """The value of `in_sight`."""

    private: bool = False
    untrusted: bool = False

    @classmethod
    def of(cls, traits: Traits) -> "InSight":
        return cls(Traits.PRIVATE in traits, Traits.UNTRUSTED in traits)

    @property
    def traits(self) -> Traits:
        private = Traits.PRIVATE if self.private else Traits.NONE
        return private | (Traits.UNTRUSTED if self.untrusted else Traits.NONE)


class KeptOptions(msgspec.Struct, frozen=True, omit_defaults=True):
    """The value of `options`: what holds for a turn until it is over, also after a resume (`TurnOptions`)."""

    read_only: bool = False
    channel: str = ""
    chat: str = ""
    depth: int = 0
    history: bool = True


DEFAULT_OPTIONS = KeptOptions()


def no_summary(tokens: int) -> StateEntry:
    """The entry for a context of so many tokens that couldn't be summarised."""
    return StateEntry(name=UNSUMMARISED, value=tokens)


class TurnAccount(msgspec.Struct, eq=False):
    """Messages and usage of a turn so far, in whatever processes it ran."""

    messages: list[Message] = []
    usage: Usage = Usage()
    iterations: int = 0


class SessionActions:
    """Reads a session's replies in the action format that each was written in, and the last one only once.

    `other` is the format of the replies that follow, where it isn't the agent's own. Of a reply in another format that
    ends a turn the answer counts, and not the command that gave it.
    """

    def __init__(self, actions: ActionFormat, formats: Mapping[str, ActionFormat]) -> None:
        self._actions = actions
        self._formats = formats
        self._last: tuple[AssistantMessage, SeenText, Intent] | None = None
        self.other: ActionFormat | None = None
        self.name = actions.name
        self.lists_tools = actions.lists_tools
        self.extra_tools = actions.extra_tools
        self.prepare = actions.prepare
        self.stream_filter = actions.stream_filter

    def follow(self, name: str) -> None:
        """From here on replies are in the format of that name."""
        other = self._formats.get(name)
        self.other = None if name == self._actions.name else other

    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        """What the reply asks for, as it was written."""
        if self.other is not None:
            intent = self.other.read(message, tools, seen)
            return msgspec.structs.replace(intent, kept_text=intent.reply) if intent.ends_turn else intent
        return self.read_own(message, tools, seen)

    def read_own(self, message: AssistantMessage, tools: Toolset, seen: SeenText) -> Intent:
        """What a reply in the agent's own format asks for."""
        last = self._last
        if last is None or last[0] is not message or last[1] is not seen:
            self._last = last = (message, seen, self._actions.read(message, tools, seen))
        return last[2]

    def report(self, results: Sequence[ToolResult]) -> Sequence[Message]:
        """The results as the model got them."""
        return (self.other or self._actions).report(results)

    def show(self, call: ToolCall, tools: Toolset) -> str:
        """The call as it was written."""
        return (self.other or self._actions).show(call, tools)


class SessionState:
    """The state of a session up to `head`, the id of the last entry that was read.

    It reads on where it stopped, so that a turn costs what was added; where the session's head was moved, all is read
    anew. `account` is that of the turn since the last `end`, `options` the last turn's; `answers` and `parked` concern
    the calls of the last reply, by their ids; `prompt` was made for `prompt_for` (None: it must be made again), and was
    last used at `prompt_used_at`;
    `acted_by` names the action format of the last replies; `sent_ids` are the ids of calls that providers know,
    `wire_ids` those of the last reply, by ours; `seen` is what the model had read before the last of them.
    `unsummarised`: how large the context was, in tokens, when no summary could be made, and it wasn't cut since;
    `overestimate`: how much smaller it is than estimated, in tokens, as far as the provider has counted it.
    """

    def __init__(self, agent: AgentRecord) -> None:
        self._agent = agent
        self._limits_known = False
        self._restart()

    def _restart(self) -> None:
        self.head, self.entries_read = "", 0
        self._entries: Sequence[AnyEntry] = []
        self.seen = SeenText()
        self._unseen: list[str] = []
        self._unheard: list[str] = []  # what players said, likewise
        self._last_reply: AssistantMessage | None = None
        self.actions = SessionActions(self._agent.actions, self._agent.formats)
        self.context = self._agent.new_context(self.actions, self._agent.tools)
        self._traited = self.context if isinstance(self.context, TraitedContext) else None  # to ask costs 20 µs
        self._begin_turn()
        self.options = DEFAULT_OPTIONS
        self.user_ids: set[str] = set()
        self.sent_ids: set[str] = set()
        self.wire_ids: dict[str, str] = {}
        self.approved: list[Rule] = []
        self.answers: dict[str, AnswerEntry] = {}
        self.parked: dict[str, ParkedEntry] = {}
        self.prompt = ""
        self.prompt_for: Any = None
        self.prompt_used_at: datetime | None = None
        self._prompt_traits = self._seen_traits = self._given_traits = Traits.NONE
        self._is_subagent = False
        self.user_words = UserWords()
        self.acted_by = ""
        self.model = ""
        self.prompt_tokens = 0
        self.unsummarised = self.overestimate = 0
        self.last_usage: Usage | None = None

    def _begin_turn(self) -> None:
        self.account = TurnAccount()
        self._driver: LoopGuardedDriver | None = None
        self._unshown: list[tuple[AssistantMessage, dict[str, ToolResult]]] = []

    def is_made_for(self, agent: AgentRecord) -> bool:
        """Whether that agent would have the same state; with other tools, say, its context differs."""
        return agent is self._agent or _PARTS(agent) == _PARTS(self._agent)

    @property
    def driver(self) -> LoopGuardedDriver:
        """The turn's driver, brought up to date with its iterations."""
        if self._driver is None:
            loops = Loops(self._agent.tools.changing, lambda call: self.actions.show(call, self._agent.tools))
            self._driver = LoopGuardedDriver(self._agent.new_driver(), loops)
        while self._unshown:
            reply, results = self._unshown.pop(0)
            intent = self.actions.read_own(reply, self._agent.tools, self.seen)
            if len(results) == len(intent.calls):
                done = [results[call.id] for call in intent.calls if call.id in results]
                self._driver.observe(Iteration(intent.reply, intent.calls, done))
        return self._driver

    @property
    def in_sight(self) -> Traits:
        """What the next call's context holds: results, recalled facts, and the prompt with the user's own files."""
        shown = self._traited.traits if self._traited else self._seen_traits
        return shown | self._prompt_traits | self._given_traits

    def read_reply(self) -> Intent:
        """What the last reply asks for."""
        return self.actions.read_own(self._last_reply, self._agent.tools, self.seen) if self._last_reply else Intent()

    def read_on(self, entries: Sequence[AnyEntry]) -> None:
        """Take in the session's entries up to its head."""
        read = self.entries_read
        moved = read > len(entries) or (read and entries[read - 1].id != self.head)
        if moved or (entries is not self._entries and entries[:read] != self._entries[:read]):  # or edited meanwhile
            self._restart()
        for entry in entries[self.entries_read :]:
            self._observe(entry)
            self.entries_read += 1
            self.head = entry.id
        self._entries = entries

    async def know_limits(self, model: KnownModel, session_key: str) -> None:
        """Look up the model's limits once, in a thread: other turns go on meanwhile."""
        if not self._limits_known:
            await asyncio.to_thread(model.limits, session_key)
            self._limits_known = True

    def observe(self, line: WorldLine) -> None:
        """Take in a line of the world, which is seen but not kept in the session."""
        self.context.observe(line)
        match line.speaker:
            case "world":
                self._unseen.append(line.text)
            case "player":
                self._unheard.append(line.text)
            case _:  # the agent's own echo and its operator are nobody else's words
                pass

    def _observe(self, entry: AnyEntry) -> None:
        self.context.observe(entry)
        match entry:
            case AssistantEntry(message=reply):
                self._answered(reply)
                self.prompt_used_at = entry.at
            case ToolEntry(message=result):
                self._done(result)
            case UserEntry(message=message):
                self._asked(message)
            case StateEntry() | SystemEntry():
                self._remember(entry)
            case EndEntry():
                self._begin_turn()
            case CompactionEntry(usage=usage):
                self.prompt_for = self.last_usage = None
                self.unsummarised = self.overestimate = 0
                self.account.usage = self.account.usage.plus(usage)
            case ParkedEntry(call_id=call_id):
                self.parked[call_id] = entry
            case AnswerEntry(call_id=call_id):
                self.answers[call_id] = entry
                self.seen.observe(entry.text, typed=True)
            case _:
                pass

    def _asked(self, message: UserMessage) -> None:
        self.account.messages.append(message)
        if not self._is_subagent:  # there another agent speaks
            self.user_words.hear(message)
        if any(map(is_from_outside, message.content)):
            self._given_traits |= Traits.UNTRUSTED
        for part in message.content:
            match part:
                case Text(text):
                    self.seen.observe(text, typed=not (self._is_subagent or text.startswith(ATTACHED)))
                case Document():  # its words are others'
                    self.seen.observe(text_in(part))
                case _:
                    pass
        if message.id:
            self.user_ids.add(message.id)

    def _answered(self, reply: AssistantMessage) -> None:
        account = self.account
        for text in self._unseen:
            self.seen.observe(text)
        for text in self._unheard:
            self.seen.observe(text, player=True)
        self._unseen.clear()
        self._unheard.clear()
        if any(isinstance(part, Opaque) and part.untrusted for part in reply.content):
            self._given_traits |= Traits.UNTRUSTED  # for good: what the context drops, the reply may still hold
        self._last_reply = reply
        self.wire_ids = {call.id: call.wire_id for call in reply.tool_calls}
        self.sent_ids |= {call.sent_id for call in reply.tool_calls}
        account.messages.append(reply)
        account.usage = account.usage.plus(reply.usage)
        account.iterations += 1
        self._unshown.append((reply, {}))
        self.answers.clear()
        self.parked.clear()
        if reply.usage.context:
            self.last_usage = reply.usage

    def _done(self, result: ToolResult) -> None:
        account = self.account
        account.messages.append(result)
        self._unseen += [part.text for part in result.content if isinstance(part, Text)]
        self._unseen += [text_in(part) for part in result.content if isinstance(part, Document)]
        if self._unshown:
            self._unshown[-1][1][result.call_id] = result
        self.user_words.find(result)
        traits = self._agent.tools.traits_of(result)
        if traits not in self._seen_traits:
            self._seen_traits |= traits

    def _remember(self, entry: StateEntry | SystemEntry) -> None:
        if isinstance(entry, SystemEntry):
            if entry.by_operator:
                self.seen.observe(entry.text, typed=True)
            else:
                self._unseen.append(entry.text)
        elif entry.name == OPTIONS:
            self.options = entry.read(KeptOptions) or KeptOptions(read_only=True)
        elif entry.name == PROMPT and (prompt := entry.read(SessionPrompt)):
            self.prompt, self.prompt_for, self.acted_by = prompt.text, prompt.made_for, prompt.actions
            self.actions.follow(prompt.actions)
            self.prompt_used_at = entry.at
            self.prompt_tokens = estimate_text(self.prompt)
            self._prompt_traits = Traits.PRIVATE if prompt.private else Traits.NONE
            self._prompt_traits |= Traits.UNTRUSTED if prompt.untrusted else Traits.NONE
            self._unseen += prompt.quoted
        elif entry.name == APPROVED and (rule := entry.read(Rule)):
            self.approved.append(rule)
        elif entry.name == SUBAGENT_OF:
            self._is_subagent = True
        elif entry.name == IN_SIGHT:
            self._given_traits |= (entry.read(InSight) or InSight(private=True, untrusted=True)).traits
        elif entry.name == RECALLED:
            self._seen_traits |= traits_of_facts(entry.value)
            self._unseen += entry.read(list[str]) or []
        elif entry.name == MODEL:
            self.model = entry.read(str) or ""
        elif entry.name == UNSUMMARISED:
            self.unsummarised = entry.read(int) or 0


def state_of(agent: AgentRecord, session: Session) -> SessionState:
    """The state of a session up to its head. Hold it while you show it lines of a world, or they may be lost."""
    state: SessionState | None = agent.states.take(session.key)
    if state is None or not state.is_made_for(agent):
        state = SessionState(agent)
    state.read_on(session.entries)
    agent.states.put(session.key, state, min(len(session.entries), agent.states.room))
    return state
