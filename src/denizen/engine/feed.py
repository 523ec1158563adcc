"""What the engine must know of a session, kept in step with its entries."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from denizen.actions import AsWritten
from denizen.config.settings import Rule
from denizen.engine.said import Said
from denizen.entries import (
    AnswerEntry,
    AnyEntry,
    AssistantEntry,
    CheckpointEntry,
    CompactionEntry,
    EndEntry,
    ParkedEntry,
    StateEntry,
    SystemEntry,
    ToolEntry,
    UserEntry,
)
from denizen.estimate import estimate_text
from denizen.messages import ATTACHED, AssistantMessage, Message, Text, ToolResult, Usage, UserMessage
from denizen.ports import (
    ActionFormat,
    ContextPolicy,
    Driver,
    Intent,
    Iteration,
    SeenText,
    Toolset,
    TraitedContext,
    Traits,
    traits_of_facts,
)

PROMPT = "prompt"
"""The state entry that holds the system prompt of a session."""

APPROVED = "approved"
"""The state entry that holds a rule which the user approved for the session."""

RECALLED = "recalled"
"""The state entry that holds what earlier sessions left for a task, as lines: the user's private data."""


class Prompt(msgspec.Struct, frozen=True):
    """The value of a `prompt`: its text, what it was made for, and the action format it was made with.

    `private`: it holds the user's own words; `untrusted`: and what was remembered of others'.
    """

    text: str
    made_for: list[Any] = msgspec.field(name="for")
    actions: str = ""
    private: bool = False
    untrusted: bool = False


class Account(msgspec.Struct, eq=False):
    """A turn so far, whatever processes it has run in: what was said and used."""

    messages: list[Message] = []
    usage: Usage = Usage()
    iterations: int = 0


class Feed:
    """Reads on where it stopped: a turn costs what was added. A moved head is read anew.

    `account` is that of the turn since the last `end`; `answers` and `parked` concern the calls of the last reply, by
    their ids; `prompt` was made for `prompt_for` (None: it must be made anew); `snapshot` is the last checkpoint;
    `acted_by` names the action format of the last replies; `seen` is what the model had read before the last of them.
    """

    def __init__(
        self,
        policy: Callable[[ActionFormat], ContextPolicy],
        driver: Callable[[], Driver],
        actions: ActionFormat,
        others: Mapping[str, ActionFormat],
        tools: Toolset,
    ) -> None:
        self._new_policy = policy
        self._new_driver = driver
        self._actions = actions
        self._others = others
        self._tools = tools
        self._entries: Sequence[AnyEntry] = ()
        self._restart(())

    def _restart(self, entries: Sequence[AnyEntry]) -> None:
        self._entries, self._read = entries, 0
        self.seen = SeenText()
        self._unseen: list[str] = []
        self._last_reply: AssistantMessage | None = None
        self._written = AsWritten(self._actions, self._others)
        self.context = self._new_policy(self._written)
        self._begin_turn()
        self.user_ids: set[str] = set()
        self.approved: list[Rule] = []
        self.answers: dict[str, AnswerEntry] = {}
        self.parked: dict[str, ParkedEntry] = {}
        self.prompt = ""
        self.prompt_for: Any = None
        self._prompt_traits = self._seen_traits = Traits.NONE
        self.said = Said()
        self.acted_by = ""
        self.prompt_tokens = 0
        self.last_usage: Usage | None = None
        self.snapshot = ""

    def _begin_turn(self) -> None:
        self.account = Account()
        self._driver: Driver | None = None
        self._untold: list[tuple[AssistantMessage, dict[str, ToolResult]]] = []

    @property
    def driver(self) -> Driver:
        """The turn's, which has seen its iterations: they are shown to it when it is asked for."""
        if self._driver is None:
            self._driver = self._new_driver()
        while self._untold:
            reply, results = self._untold.pop(0)
            intent = self._actions.read(reply, self._tools, self.seen)
            if len(results) == len(intent.calls):
                done = [results[call.id] for call in intent.calls if call.id in results]
                self._driver.observe(Iteration(intent.reply, intent.calls, done))
        return self._driver

    @property
    def in_sight(self) -> Traits:
        """What the next call's context holds: results, recalled facts, and the prompt with the user's own files."""
        shown = self.context.traits if isinstance(self.context, TraitedContext) else self._seen_traits
        return shown | self._prompt_traits

    @property
    def intent(self) -> Intent:
        """What the last reply asks for."""
        return self._actions.read(self._last_reply, self._tools, self.seen) if self._last_reply else Intent()

    def knows(self, entries: Sequence[AnyEntry]) -> bool:
        """Whether these are the entries that it read, and what was added to them."""
        return entries is self._entries

    def read_on(self, entries: Sequence[AnyEntry]) -> None:
        """Take in the session's entries up to its head."""
        if entries is not self._entries or len(entries) < self._read:
            self._restart(entries)
        for entry in entries[self._read :]:
            self._observe(entry)
            self._read += 1

    def _observe(self, entry: AnyEntry) -> None:
        self.context.observe(entry)
        match entry:
            case AssistantEntry(message=reply):
                self._answered(reply)
            case ToolEntry(message=result):
                self._done(result)
            case UserEntry(message=message):
                self._asked(message)
            case StateEntry() | SystemEntry():
                self._remember(entry)
            case EndEntry():
                self._begin_turn()
            case CheckpointEntry(snapshot=snapshot):
                self.snapshot = snapshot
            case CompactionEntry(usage=usage):
                self.prompt_for = self.last_usage = None
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
        self.said.hear(message)
        for part in message.content:
            if isinstance(part, Text):
                self.seen.observe(part.text, typed=not part.text.startswith(ATTACHED))
        if message.id:
            self.user_ids.add(message.id)

    def _answered(self, reply: AssistantMessage) -> None:
        account = self.account
        for text in self._unseen:
            self.seen.observe(text)
        self._unseen.clear()
        self._last_reply = reply
        account.messages.append(reply)
        account.usage = account.usage.plus(reply.usage)
        account.iterations += 1
        self._untold.append((reply, {}))
        self.answers.clear()
        self.parked.clear()
        if reply.usage.context:
            self.last_usage = reply.usage

    def _done(self, result: ToolResult) -> None:
        account = self.account
        account.messages.append(result)
        self._unseen += [part.text for part in result.content if isinstance(part, Text)]
        if self._untold:
            self._untold[-1][1][result.call_id] = result
        self.said.find(result)
        traits = self._tools.traits_of(result)
        if traits not in self._seen_traits:
            self._seen_traits |= traits

    def _remember(self, entry: StateEntry | SystemEntry) -> None:
        if isinstance(entry, SystemEntry):
            self._unseen.append(entry.text)
        elif entry.name == PROMPT and (prompt := entry.read(Prompt)):
            self.prompt, self.prompt_for, self.acted_by = prompt.text, prompt.made_for, prompt.actions
            self._written.follow(prompt.actions)
            self.prompt_tokens = estimate_text(self.prompt)
            self._prompt_traits = Traits.PRIVATE if prompt.private else Traits.NONE
            self._prompt_traits |= Traits.UNTRUSTED if prompt.untrusted else Traits.NONE
        elif entry.name == APPROVED and (rule := entry.read(Rule)):
            self.approved.append(rule)
        elif entry.name == RECALLED:
            self._seen_traits |= traits_of_facts(entry.value)
            self._unseen += entry.read(list[str]) or []
