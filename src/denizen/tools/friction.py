"""Where tools cost more than they should, as transcripts show it, and the defaults that would have saved calls.

Decisions, "Friction".
"""

import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from denizen.config.commands import simple_commands
from denizen.entries import AnyEntry, AssistantEntry, StartedEntry, ToolEntry, UserEntry
from denizen.messages import AssistantMessage, ToolCall, ToolResult
from denizen.ports import INVALID_JSON, MISUSED, Schema
from denizen.text.not_run import CANCELLED, CUT_OFF, DROPPED, ELSEWHERE, MISSING, NOT_RUN, STOPPED_WHILE_RUNNING
from denizen.tools.policy.defaults import may_default, misfit

Kind = Literal["repeated", "misused", "refused", "failed", "corrected", "cut_off", "worked_around"]

POSITION_ARGUMENTS = frozenset({"start", "end", "lines"})
"""Arguments that say which part to show: to change them is to read on, not to correct."""
PROGRAMS_WITH_TOOLS = frozenset({"cat", "head", "tail", "sed", "grep", "rg", "find", "ls", "tree"})
"""Programs in place of which there are tools: run alone, they are a way around those."""
_SUBJECTS = {"task": {"text"}}
"""Arguments that may be left out and yet say what a call is about: another one is another question."""
_MAX_EXAMPLE_CHARS = 100  # characters of an example
_OWN_RESULTS = frozenset({CANCELLED, CUT_OFF, DROPPED, ELSEWHERE, MISSING, STOPPED_WHILE_RUNNING, *NOT_RUN.values()})
_MISUSE = re.compile(r".{0,80}: wrong arguments: |(?:unknown|there is no) tool ")
_CUT = re.compile(r"^\[[^\n]*(?:to go on: |left out|cut: |more: |took longer than )", re.MULTILINE)

CallsOf = Callable[[AssistantMessage], Sequence[ToolCall]]


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A call and its result; `turn` numbers the user's message that it belongs to.

    `since` counts the calls before it that may have changed something.
    """

    call: ToolCall
    result: ToolResult
    turn: int
    since: int

    @property
    def went(self) -> Kind | None:
        """The kind of trouble that it had by itself; None: no trouble."""
        if not self.result.is_error:
            return "cut_off" if _CUT.search(self.result.text) else None
        if {MISUSED, INVALID_JSON} & self.call.args.keys() or _MISUSE.match(self.result.text):
            return "misused"
        if self.result.text.startswith("not run: "):
            return "refused"
        return "cut_off" if _CUT.search(self.result.text) else "failed"


@dataclass(frozen=True, slots=True)
class Correction:
    """A call that was made again at once with one argument changed (None: not given)."""

    tool: str
    argument: str
    before: Any
    after: Any


@dataclass(slots=True)
class Friction:
    """One tool's calls over all transcripts, and of each kind the occurrences, described."""

    tool: str
    calls: int = 0
    of: dict[Kind, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    args: list[dict[str, Any]] = field(default_factory=list)
    corrections: list[Correction] = field(default_factory=list)

    def count(self, kind: Kind) -> int:
        """How many there are of a kind."""
        return self.of[kind].total()


def friction(
    transcripts: Iterable[tuple[Sequence[AnyEntry], CallsOf]], schemas: Mapping[str, Schema]
) -> list[Friction]:
    """The friction of each tool's calls, the most first.

    A transcript comes with what reads the calls of its replies; `schemas` are those of the tools that there are now.
    One transcript is held at a time.
    """
    found: dict[str, Friction] = {}
    for entries, calls_of in transcripts:
        attempts = [*_attempts(entries, calls_of)]
        answered: set[tuple[str, str, int, int]] = set()  # in the turn, with nothing done since that could change it
        for attempt in attempts:
            tool = found.setdefault(attempt.call.name, Friction(attempt.call.name))
            tool.calls += 1
            tool.args.append(attempt.call.args)
            key = (attempt.call.name, _key(attempt.call.args), attempt.turn, attempt.since)
            if key in answered:
                tool.of["repeated"][_shown(attempt.call.args)] += 1
            elif not attempt.result.is_error:
                answered.add(key)
            if kind := attempt.went:
                said = _short(attempt.result.text.partition("\n")[0])
                tool.of[kind][_shown(attempt.call.args) if kind == "cut_off" else said] += 1
            command = attempt.call.args.get("command")
            simple = simple_commands(command) if isinstance(command, str) else None
            if simple and len(simple) == 1 and simple[0].text.partition(" ")[0] in PROGRAMS_WITH_TOOLS:
                tool.of["worked_around"][_short(simple[0].text)] += 1
        for correction in _corrections(attempts, schemas):
            tool = found[correction.tool]
            tool.corrections.append(correction)
            values = (correction.before, correction.after)
            before, after = ("not given" if value is None else _key(value) for value in values)
            tool.of["corrected"][_short(f"{correction.argument}: {before} → {after}")] += 1
    return sorted(found.values(), key=lambda tool: (-sum(map(tool.count, tool.of)), -tool.calls, tool.tool))


def _attempts(entries: Sequence[AnyEntry], calls_of: CallsOf) -> Iterator[AnsweredCall]:
    """The calls that were answered; those that weren't run because something else came are left out."""
    asked: dict[str, ToolCall] = {}
    turn = since = 0
    for entry in entries:
        match entry:
            case UserEntry():
                turn += 1
            case AssistantEntry(message=message):
                asked = {call.id: call for call in calls_of(message)}
            case StartedEntry():
                since += 1
            case ToolEntry(message=result) if result.call_id in asked and result.text not in _OWN_RESULTS:
                yield AnsweredCall(asked[result.call_id], result, turn, since)


def _corrections(attempts: Sequence[AnsweredCall], schemas: Mapping[str, Schema]) -> Iterator[Correction]:
    """Calls and those of the same tool right after them in the turn that differ in one argument.

    After a success only an argument that has a default counts: another path or pattern is another question.
    """
    last: dict[tuple[str, int], AnsweredCall] = {}
    for attempt in attempts:
        name = attempt.call.name
        first = last.get((name, attempt.turn))
        last[name, attempt.turn] = attempt
        if first is None:
            continue
        old, new = first.call.args, attempt.call.args
        changed = [argument for argument in {**old, **new} if old.get(argument) != new.get(argument)]
        if len(changed) != 1 or changed[0] in POSITION_ARGUMENTS:
            continue
        optional = {*may_default(schemas[name])} - _SUBJECTS.get(name, set()) if name in schemas else set()
        if changed[0] in optional or first.result.is_error:
            yield Correction(name, changed[0], old.get(changed[0]), new.get(changed[0]))


def _shown(args: dict[str, Any]) -> str:
    return _short(", ".join(f"{name}={_key(value)}" for name, value in args.items()) or "no arguments")


def _short(text: str) -> str:
    return text if len(text) <= _MAX_EXAMPLE_CHARS else f"{text[: _MAX_EXAMPLE_CHARS - 1]}…"


def _key(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


MIN_CORRECTIONS = 3  # corrections to an argument from which on a default is proposed, …
MIN_CORRECTED_SHARE = 0.2  # … if they are this share of the tool's calls; and of the corrections a half agree
MIN_GIVEN = 10  # calls that give an argument from which on its value is proposed as the default, …
MIN_GIVEN_SHARE = 0.8  # … if this share of the tool's calls give that very value
_MAX_DEFAULT_CHARS = 100  # characters of a text that may be a default


class Proposal(msgspec.Struct, frozen=True):
    """Give `argument` of `tool` the default `value`, in place of `now` (None: none), for the reason `why`."""

    tool: str
    argument: str
    value: Any
    now: Any
    why: str

    @property
    def name(self) -> str:
        """`grep.context`."""
        return f"{self.tool}.{self.argument}"


def proposals(tools: Iterable[Friction], schemas: Mapping[str, Schema]) -> list[Proposal]:
    """The defaults that fit how the tools are called better than those they have."""
    found: list[Proposal] = []
    for tool in tools:
        for argument, kind in may_default(schemas[tool.tool]).items() if tool.tool in schemas else ():
            if argument in POSITION_ARGUMENTS:
                continue
            value, why = _corrected(tool, argument)
            if value is None:
                value, why = _given(tool, argument)
            now = kind.get("default")
            if value is None or value == now or (now is None and not value) or misfit(value, kind):
                continue  # a schema doesn't tell of a default that is false, nothing or empty
            found.append(Proposal(tool.tool, argument, value, now, why))
    return found


def _corrected(tool: Friction, argument: str) -> tuple[Any, str]:
    """The value that the argument was often corrected to."""
    values = [each.after for each in tool.corrections if each.argument == argument and _is_plain(each.after)]
    if len(values) < MIN_CORRECTIONS or len(values) < MIN_CORRECTED_SHARE * tool.calls:
        return None, ""
    why = f"{len(values)} of {tool.calls} calls were made again at once with another {argument}"
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values):
        return statistics.median_high(values), why
    value, count = _most_common(values)
    return (value, why) if 2 * count >= len(values) else (None, "")


def _given(tool: Friction, argument: str) -> tuple[Any, str]:
    """The value that nearly every call gives."""
    values = [args[argument] for args in tool.args if _is_plain(args.get(argument))]
    if len(values) < MIN_GIVEN:
        return None, ""
    value, count = _most_common(values)
    if count < MIN_GIVEN or count < MIN_GIVEN_SHARE * tool.calls:
        return None, ""
    return value, f"{count} of {tool.calls} calls give it"


def _most_common(values: Sequence[Any]) -> tuple[Any, int]:
    [(text, count)] = Counter(map(json.dumps, values)).most_common(1)
    return json.loads(text), count


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) or (isinstance(value, str) and 0 < len(value) <= _MAX_DEFAULT_CHARS)
