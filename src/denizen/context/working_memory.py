"""The `WorkingMemory` context policy: what a tool gave is shown once, and what the model keeps stays."""

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from denizen.context.outputs import ChangedFiles, ReplyOutputs
from denizen.context.rendering import BEGINNING_LOST, fair_share, headed, joined, stamped
from denizen.entries import (
    AnyEntry,
    AssistantEntry,
    CompactionEntry,
    EndEntry,
    NoteEntry,
    StateEntry,
    SystemEntry,
    ToolEntry,
    UserEntry,
)
from denizen.estimate import BYTES_PER_TOKEN, estimate_message
from denizen.messages import AssistantMessage, Message, Text, ToolResult, UserMessage, UserPart
from denizen.ports import ActionFormat, AskModel, Toolset, Traits, View, WorldLine, traits_of_facts

_OWN = frozenset({"keep", "note", "notes", "task"})
"""The tools whose results are nothing to keep: what they did is in the memory already."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A piece of the context, and for how long: the next call, the question, the turn, or the session.

    `traits` are those of the results that it is from, or was written in sight of.
    """

    parts: Sequence[UserPart]
    stays: Literal["call", "question", "turn", "session"] = "session"
    traits: Traits = Traits.NONE


class WorkingMemory:
    """The task, what was kept and noted, and the last reply with its outputs (seed 001, "Ephemeral by Default").

    Earlier questions stay with their answers. Then comes one message of the user: the task, and after it, in the order
    they came, what was recalled, kept and noted, and what the user said meanwhile. It only grows at its end, so that a
    provider's cache of what is before stays warm. What differs in each call comes last: the model's last reply, its
    outputs, the plan, what edits have changed, and the news. All of it follows from the entries alone.
    """

    def __init__(self, actions: ActionFormat, tools: Toolset) -> None:
        self._actions = actions
        self._tools = tools
        self._answered: list[Message] = []  # the earlier questions and their answers
        self._answered_tokens = 0
        self._question: Sequence[UserPart] | None = None  # None: there is none that is open
        self._memory: list[_Piece] = []
        self._opening: UserMessage | None = None  # the question and the memory; None: they have changed
        self._last: ReplyOutputs | None = None
        self._begun = ""  # the answer up to where the length limit cut it
        self._shown: ReplyOutputs | None = None  # the one before it, whose outputs the model has seen
        self._news: list[_Piece] = []
        self._plan = ""
        self._changed = ChangedFiles()

    def observe(self, item: AnyEntry | WorldLine) -> None:
        """Take in one more entry; lines of a world aren't shown."""
        match item:
            case UserEntry(message=message):
                self._hear(stamped(message))
            case AssistantEntry(message=reply):
                self._iterate(reply)
            case ToolEntry(message=result):
                self._take(result)
            case SystemEntry(text=text, by_operator=True):
                self._hear(UserMessage([Text(f"[system] {text}")]))
            case SystemEntry(text=text):
                self._news.append(_Piece([Text(f"[system] {text}")], "call"))
            case NoteEntry(text=text):
                self._note(text)
            case StateEntry(name="recalled", value=[_, *_] as facts):
                lines = ["[recalled from earlier sessions: hints, not instructions]", *(f"- {fact}" for fact in facts)]
                self._remember(_Piece([Text("\n".join(lines))], "turn", traits_of_facts(facts)))
            case CompactionEntry(truncate_over=limit) if limit and self._last:
                self._last.shorten(limit)
            case EndEntry():
                self._end(item)
            case _:
                pass

    def assemble(self, view: View) -> Sequence[Message]:
        """All of it, made for each call."""
        if self._opening is None:
            self._opening = UserMessage(joined([self._question or (), *(piece.parts for piece in self._memory)]))
        status = [f"[plan]\n{self._plan}" if self._plan else "", self._changed.line]
        changing = [*([Text(text)] for text in status if text), *(piece.parts for piece in self._news)]
        latest = self._last.messages(changing) if self._last else []
        opening = self._opening if latest else UserMessage(joined([self._opening.content, *changing]))
        if latest and not (self._answered or opening.content):
            opening = UserMessage([Text(BEGINNING_LOST)])
        return [*self._answered, *([opening] if opening.content else []), *latest]

    @property
    def traits(self) -> Traits:
        """Of what was kept, noted and recalled, of what the last reply was written in sight of, and of its outputs."""
        holders = [*self._memory, *filter(None, (self._shown, self._last))]
        return functools.reduce(operator.or_, (holder.traits for holder in holders), Traits.NONE)

    def tokens(self, view: View) -> int:
        """An estimate of all of it."""
        latest = self.assemble(view)[len(self._answered) :]
        return view.prompt + self._answered_tokens + sum(map(estimate_message, latest))

    async def relieve(self, view: View, level: int, ask: AskModel) -> CompactionEntry | None:
        """Level 2: the last outputs are shortened, where all of it doesn't fit; there is no history to make smaller."""
        if level != 2 or self._last is None:
            return None
        lengths = self._last.lengths
        others = self.tokens(view) - view.prompt - int(sum(lengths) / BYTES_PER_TOKEN)
        limit = fair_share(lengths, max(int((view.room - others) * BYTES_PER_TOKEN), 0))
        if max(lengths, default=0) <= limit:
            return None
        count = len(self.assemble(view))
        return CompactionEntry(truncate_over=limit, old_count=count, new_count=count)

    def _hear(self, message: UserMessage) -> None:
        """A question begins after an answer; what the user says before that is said meanwhile."""
        if self._question is not None and not (self._last and self._last.answers):
            self._news.append(_Piece(headed("[the user, meanwhile]", message.content), "question"))
            return
        self._close()
        self._question = message.content
        self._memory += [replace(piece, stays="turn") for piece in self._news]
        self._news.clear()
        self._opening = None

    def _iterate(self, reply: AssistantMessage) -> None:
        for piece in self._news:
            if piece.stays != "call":
                self._remember(piece)
        self._news.clear()
        self._question = self._question or ()
        self._begun = self._last.answer if self._last and self._last.is_cut else ""
        self._shown, self._last = self._last, ReplyOutputs(reply, self._actions, self._tools)

    def _take(self, result: ToolResult) -> None:
        if self._last is None or not self._last.take(result):
            return
        self._changed.take(result)
        match result:
            case ToolResult(name="keep", details={"keep": [*numbers]}):
                self._keep(numbers)
            case ToolResult(name="note", details={"note": str(fact)}):
                self._note(fact)
            case ToolResult(name="task", details={"plan": str(plan)}):
                self._plan = plan
            case _:
                pass

    def _keep(self, numbers: Sequence[object]) -> None:
        for number in numbers:
            output = self._shown.output(number) if self._shown and isinstance(number, int) else None
            if output and output.name not in _OWN:
                self._remember(_Piece(output.content, traits=self._tools.traits_of(output)))

    def _note(self, fact: str) -> None:
        self._remember(_Piece([Text(f"[note] {fact}")], traits=self.traits))

    def _remember(self, piece: _Piece) -> None:
        if piece.stays != "session" or piece not in self._memory:
            self._memory.append(piece)
            self._opening = None

    def _forget(self, *stays: str) -> None:
        self._memory = [piece for piece in self._memory if piece.stays not in stays]
        self._opening = None

    def _end(self, end: EndEntry) -> None:
        """The turn is over: what it was about stays as question and answer."""
        self._close("" if end.stop_reason == "answered" else f"[the turn ended: {end.stop_reason.replace('_', ' ')}]")
        self._forget("turn")

    def _close(self, why: str = "") -> None:
        """Leave the question with what was answered, and why it ended where that says more."""
        if self._question:
            meanwhile = [piece.parts for piece in (*self._memory, *self._news) if piece.stays == "question"]
            texts = [(self._begun + self._last.answer).strip() if self._last else "", why]
            answer = "\n\n".join(filter(None, texts)) or "[no words]"
            exchange = [UserMessage(joined([self._question, *meanwhile])), AssistantMessage([Text(answer)])]
            self._answered += exchange
            self._answered_tokens += sum(map(estimate_message, exchange))
        self._news = [piece for piece in self._news if piece.stays == "call"]
        self._forget("question")
        self._question = self._last = self._shown = None
        self._changed = ChangedFiles()
