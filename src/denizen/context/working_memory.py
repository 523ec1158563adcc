"""The `WorkingMemory` context policy: what a tool gave is shown once, and what the model keeps stays."""

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

import msgspec

from denizen.context import rendering
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
from denizen.messages import AssistantMessage, Message, Text, ToolResult, UserMessage, UserPart
from denizen.ports import ActionFormat, AskModel, Toolset, Traits, View, WorldLine, traits_of_facts
from denizen.text.estimate import BYTES_PER_TOKEN, estimate_message
from denizen.text.plural import counted

MAX_COMMAND_CHARS = 200
"""Characters of a command that are shown above its output; the reply itself has the whole of it."""
MAX_FILES = 20
"""Changed files that are named."""

_BOOKKEEPING = frozenset({"keep", "note", "notes", "task"})
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
    """The task, what was kept and noted, and the last reply with its outputs (decisions, "Working memory").

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
                self._hear(rendering.stamped(message))
            case AssistantEntry(message=reply):
                for piece in self._news:
                    if piece.stays != "call":
                        self._remember(piece)
                self._news.clear()
                self._question = self._question or ()
                self._begun = self._last.answer if self._last and self._last.is_cut else ""
                self._shown, self._last = self._last, ReplyOutputs(reply, self._actions, self._tools)
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
            case EndEntry(stop_reason=why):  # what the turn was about stays as question and answer
                self._close("" if why == "answered" else f"[the turn ended: {why.replace('_', ' ')}]")
                self._forget("turn")

    def assemble(self, view: View) -> Sequence[Message]:
        """All of it, made for each call."""
        if self._opening is None:
            self._opening = UserMessage(
                rendering.joined([self._question or (), *(piece.parts for piece in self._memory)])
            )
        status = [f"[plan]\n{self._plan}" if self._plan else "", self._changed.line]
        changing = [*([Text(text)] for text in status if text), *(piece.parts for piece in self._news)]
        latest = self._last.messages(changing) if self._last else []
        opening = self._opening if latest else UserMessage(rendering.joined([self._opening.content, *changing]))
        if latest and not (self._answered or opening.content):
            opening = UserMessage([Text(rendering.BEGINNING_LOST)])
        return [*self._answered, *([opening] if opening.content else []), *latest]

    @property
    def traits(self) -> Traits:
        """Of what was kept, noted and recalled, of what the last reply was written in sight of, and of its outputs."""
        holders = [*self._memory, *filter(None, (self._shown, self._last))]
        return functools.reduce(operator.or_, (holder.traits for holder in holders), Traits.NONE)

    def tokens(self, view: View) -> int:
        """An estimate of the whole context."""
        latest = self.assemble(view)[len(self._answered) :]
        return view.prompt + self._answered_tokens + sum(map(estimate_message, latest))

    async def relieve(self, view: View, level: int, ask: AskModel) -> CompactionEntry | None:
        """Level 2: the last outputs are shortened if the context doesn't fit; there is no history to make smaller."""
        if level != 2 or self._last is None:
            return None
        lengths = self._last.lengths
        others = self.tokens(view) - view.prompt - int(sum(lengths) / BYTES_PER_TOKEN)
        limit = rendering.fair_share(lengths, max(int((view.room - others) * BYTES_PER_TOKEN), 0))
        if max(lengths, default=0) <= limit:
            return None
        count = len(self.assemble(view))
        return CompactionEntry(truncate_over=limit, old_count=count, new_count=count)

    def _hear(self, message: UserMessage) -> None:
        """Begin a question, if the last one was answered; otherwise the user adds to it."""
        if self._question is not None and not (self._last and self._last.answers):
            self._news.append(_Piece(rendering.headed("[the user, meanwhile]", message.content), "question"))
            return
        self._close()
        self._question = message.content
        self._memory += [replace(piece, stays="turn") for piece in self._news]
        self._news.clear()
        self._opening = None

    def _take(self, result: ToolResult) -> None:
        if self._last is None or not self._last.take(result):
            return
        self._changed.take(result)
        match result:
            case ToolResult(name="keep", details={"keep": [*numbers]}):
                for number in numbers:
                    output = self._shown.output(number) if self._shown and isinstance(number, int) else None
                    if output and output.name not in _BOOKKEEPING:
                        self._remember(_Piece(output.content, traits=self._tools.traits_of(output)))
            case ToolResult(name="note", details={"note": str(fact)}):
                self._note(fact)
            case ToolResult(name="task", details={"plan": str(plan)}):
                self._plan = plan

    def _note(self, fact: str) -> None:
        self._remember(_Piece([Text(f"[note] {fact}")], traits=self.traits))

    def _remember(self, piece: _Piece) -> None:
        if piece.stays != "session" or piece not in self._memory:
            self._memory.append(piece)
            self._opening = None

    def _forget(self, *stays: str) -> None:
        self._memory = [piece for piece in self._memory if piece.stays not in stays]
        self._opening = None

    def _close(self, why: str = "") -> None:
        """Close the question with its answer, and with the reason of its end if that says more."""
        if self._question:
            meanwhile = [piece.parts for piece in (*self._memory, *self._news) if piece.stays == "question"]
            texts = [(self._begun + self._last.answer).strip() if self._last else "", why]
            answer = "\n\n".join(filter(None, texts)) or "[no words]"
            exchange = [UserMessage(rendering.joined([self._question, *meanwhile])), AssistantMessage([Text(answer)])]
            self._answered += exchange
            self._answered_tokens += sum(map(estimate_message, exchange))
        self._news = [piece for piece in self._news if piece.stays == "call"]
        self._forget("question")
        self._question = self._last = self._shown = None
        self._changed = ChangedFiles()


class ReplyOutputs:
    """One reply with the outputs of its calls: `[1] $ command`, and what it gave.

    They are numbered as the calls come in the reply, whatever order they ended in.
    """

    def __init__(self, reply: AssistantMessage, actions: ActionFormat, tools: Toolset) -> None:
        self._actions = actions
        self._tools = tools
        self._intent = actions.read(reply, tools)
        kept = self._intent.kept_text
        self._reply = reply if kept is None else rendering.with_text(reply, kept)
        self._native = {call.id for call in reply.tool_calls}
        self._calls = {call.id: call for call in self._intent.calls}
        self._results: dict[str, ToolResult] = {}
        self.traits = Traits.NONE  # of the results

    @property
    def answers(self) -> bool:
        """Whether the reply ends the turn, unless a message follows."""
        return self._intent.ends_turn or not self._intent.calls

    @property
    def answer(self) -> str:
        """The text for the person."""
        return self._intent.reply

    @property
    def is_cut(self) -> bool:
        """Whether the length limit cut that text."""
        return self._reply.stop_reason == "length" and not self._intent.calls

    def take(self, result: ToolResult) -> bool:
        """Take in the result of one of its calls; False for any other, and for a second one."""
        if result.call_id not in self._calls or result.call_id in self._results:
            return False
        self._results[result.call_id] = result
        self.traits |= self._tools.traits_of(result)
        return True

    @property
    def lengths(self) -> list[int]:
        """Characters of each result."""
        return [
            *chain.from_iterable(rendering.result_lengths(result, reported=False) for result in self._results.values())
        ]

    def shorten(self, limit: int) -> None:
        """Leave `limit` characters of each result."""
        self._results = {id_: rendering.shortened(result, False, limit) for id_, result in self._results.items()}

    def output(self, number: int) -> ToolResult | None:
        """The result of that number, below its command; None if there is none."""
        calls = self._intent.calls
        result = self._results.get(calls[number - 1].id) if 1 <= number <= len(calls) else None
        return result and self._headed("[kept]", result)

    def messages(self, news: Sequence[Sequence[UserPart]]) -> list[Message]:
        """The reply, its outputs, its problems, and the news; empty if nothing follows it."""
        outputs = [
            self._headed(f"[{number}]", self._results.get(call.id) or rendering.missing_result(call))
            for number, call in enumerate(self._intent.calls, 1)
        ]
        native = [result for result in outputs if result.call_id in self._native]
        texts = [result.content for result in outputs if result.call_id not in self._native]
        reported = rendering.joined([*texts, *([Text(problem)] for problem in self._intent.problems), *news])
        if not self._reply.content or not (native or reported):
            return []
        return [self._reply, *native, *([UserMessage(reported)] if reported else [])]

    def _headed(self, mark: str, result: ToolResult) -> ToolResult:
        command = " ".join(self._actions.show(self._calls[result.call_id], self._tools).split())
        shown = command if len(command) <= MAX_COMMAND_CHARS else f"{command[:MAX_COMMAND_CHARS]}…"
        failed = " (failed)" if result.is_error else ""
        return msgspec.structs.replace(result, content=rendering.headed(f"{mark} $ {shown}{failed}", result.content))


class ChangedFiles:
    """Adds up the edits that results report; a rollback takes it back to what it was at the checkpoint."""

    def __init__(self) -> None:
        self._files: dict[str, str | tuple[int, int]] = {}  # "new", "deleted", or the lines added and removed
        self._checkpoints: dict[str, dict[str, str | tuple[int, int]]] = {}

    def take(self, result: ToolResult) -> None:
        """Add the edits of a result."""
        for edit in result.edits:
            path, did = edit["path"], edit.get("did", "created" if edit.get("created") else "updated")
            if did == "renamed":
                self._delete(edit["from"])
            before = self._files.get(path, (0, 0))
            if did == "deleted":
                self._delete(path)
            elif did in {"created", "renamed", "copied"}:
                self._files[path] = "new" if isinstance(before, tuple) else (edit["added"], edit["removed"])
            elif isinstance(before, tuple):
                self._files[path] = (before[0] + edit["added"], before[1] + edit["removed"])
        match result.details:
            case {"checkpoint": str(snapshot)}:
                self._checkpoints[snapshot] = {**self._files}
            case {"rollback": str(snapshot)}:
                self._files = {**self._checkpoints.get(snapshot, {})}

    @property
    def line(self) -> str:
        """`changed: a.py (+3 −1), tests/test_a.py (new)`; empty if nothing was."""
        named: list[str] = []
        for path, change in self._files.items():
            words = change if isinstance(change, str) else f"+{change[0]} −{change[1]}"
            named.append(f"{path} ({words})")
        more = [f"and {counted(len(named) - MAX_FILES, 'file')} more"] if len(named) > MAX_FILES else []
        return f"changed: {', '.join([*named[:MAX_FILES], *more])}" if named else ""

    def _delete(self, path: str) -> None:
        if self._files.pop(path, "") != "new":
            self._files[path] = "deleted"
