"""Loop detection: whether a turn repeats itself, and what to do about it (decisions, "Loop detection")."""

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from denizen.config.pattern import pattern
from denizen.messages import Text, ToolCall, ToolResult
from denizen.ports import Action, Backtrack, Escalate, GiveUp, Iteration, Proceed
from denizen.text.not_run import DROPPED, MISSING

MAX_REPEATS = 3
"""Iterations with the same call and result, or the same error, that are a loop; rounds of a cycle, whatever it gave."""
MAX_CYCLE_CALLS = 4
"""Calls of a cycle. Twice with the same results is a loop already."""
MAX_STALE_ITERATIONS = 5
"""Iterations in a row without anything new that are a loop. As many with something new and no error that was there
before, and the ladder starts over."""
BOOKKEEPING = frozenset({"keep", "note", "notes", "task"})
"""Bookkeeping tools of the agent: their calls count neither as a loop nor as news."""

_TIMES = pattern(
    r"(?<![\d.])\d{1,9}(?:\.\d{1,9})?\s?(?:ms|s|secs?|seconds?|min|minutes?)\b"
    r"|\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?\b"
)
"""How long a command took, and when it ran; a number of many digits is looked at once."""
_ENCODER = msgspec.json.Encoder(order="deterministic", enc_hook=repr)
_NOT_RUN_RESULTS = frozenset({DROPPED, MISSING})
_WAITING = (
    f"You have made the same call {MAX_REPEATS} times in a row: {{}}. If you wait for something, wait longer before "
    "you look again; else say in a sentence what it is to bring, and do something else."
)
_MAX_LISTED_CALLS = 6
"""Calls listed as tried."""
_MAX_LINE_CHARS = 120
"""Characters of a call or a result in a message."""


class _Attempt(NamedTuple):
    """A call with its result. `call_key` and `key` are alike for like calls, and for like calls with like results.

    `again`: the call was made before in the turn.
    """

    call: ToolCall
    result: ToolResult
    call_key: int
    key: int
    again: bool
    iteration: int


class _LoopSign(msgspec.Struct, frozen=True):
    """Why a turn seems to loop, and since which iteration."""

    what: str
    since: int


class Loops:
    """Takes in the iterations of a turn; `action` is what the last one calls for, `stuck` whether it closes a loop.

    The same call with the same result, nothing having changed between; the same error, whatever was changed between,
    until the call that gave it succeeds; a cycle of calls; nothing new.
    For the first loop that is a reflection, then a return to the last checkpoint, then a question to the person, then
    the end of the turn; each restarts the counts. The same call in a row with different results isn't a loop, because
    it may wait for something: the model is asked about it, once. An iteration costs the same however many came before.
    `changing` are the names of tools that can change something, `show` writes a call in one line.
    """

    def __init__(self, changing: Collection[str], show: Callable[[ToolCall], str]) -> None:
        self._changing = changing
        self._show = show
        self.action: Action | None = None
        self.stuck = False
        self._now = self._rung = self._since = self._forgiven = 0
        self._known: set[int] = set()  # what was seen in the turn: calls, results, both together, errors, texts
        self._first: Iteration | None = None
        self._fresh = 0  # iterations in a row that brought something new
        self._recent = deque[_Attempt](maxlen=MAX_REPEATS * MAX_CYCLE_CALLS)
        self._row_of = 0  # the calls that the last iterations have made, each the same; `_row` is how many of them
        self._restart_counts()

    def _restart_counts(self) -> None:
        self._counts: dict[int, tuple[int, int]] = {}  # how often, since when: calls with their results
        self._errors: dict[int, tuple[int, int]] = {}
        self._failing: dict[int, int] = {}  # the calls whose last result was an error, and which
        self._counted_from = self._now + 1
        self._stale = self._row = 0

    def observe(self, iteration: Iteration) -> None:
        """Take in an iteration. The first is examined with the second: alone it can't be a loop."""
        if self._first is None:
            self._first = iteration
            return
        if not self._now:
            self._observe(self._first)
        self._observe(iteration)

    def _observe(self, iteration: Iteration) -> None:
        self._now += 1
        self.action = None
        steps = self._steps(iteration) if iteration.calls else ()
        news = [self._is_news(step) for step in steps] if iteration.calls else [self._is_new(hash(iteration.text))]
        fails_again = any(step.result.is_error and not new for step, new in zip(steps, news, strict=False))
        self._fresh = self._fresh + 1 if True in news and not fails_again else 0
        self._stale = 0 if True in news else self._stale + 1
        if self._fresh >= MAX_STALE_ITERATIONS:
            self._rung, self._forgiven = 0, self._now
            self._counts.clear()
        sign = self._repeated(steps) or self._error(steps) or self._circle(steps) or self._nothing_new()
        self.stuck = sign is not None
        if sign:
            self._climb(sign)
        elif steps and self._in_a_row(steps):
            self.action = Proceed(_WAITING.format(self._named(steps[0])))

    def _steps(self, iteration: Iteration) -> Sequence[_Attempt]:
        """The calls that count, each once."""
        steps: dict[int, _Attempt] = {}
        for call, result in zip(iteration.calls, iteration.results, strict=False):
            if call.name not in BOOKKEEPING and result.text not in _NOT_RUN_RESULTS:
                call_key = hash((call.name, _ENCODER.encode(call.args)))
                key = hash((call_key, result.is_error, *self._seen(result)))
                if key not in steps:
                    steps[key] = _Attempt(call, result, call_key, key, not self._is_new(call_key), self._now)
        self._recent.extend(steps.values())
        return [*steps.values()]

    def _seen(self, result: ToolResult) -> Sequence[object]:
        """The content of a result; for commands without the times in it."""
        if result.name not in self._changing:
            return result.content
        return [_TIMES.sub("", part.text) if isinstance(part, Text) else part for part in result.content]

    def _is_news(self, step: _Attempt) -> bool:
        """Whether the step brought something new: an error, a change, or a new content."""
        unseen = self._is_new(step.key)
        if step.result.is_error:
            return self._is_new(_error_key(step))
        if step.call.name not in self._changing:
            return self._is_new(hash((*step.result.content,)))
        if unseen:
            self._counts.clear()  # what is looked at again may be another
        return unseen

    def _is_new(self, key: int) -> bool:
        new = key not in self._known
        self._known.add(key)
        return new

    def _repeated(self, steps: Iterable[_Attempt]) -> _LoopSign | None:
        for step in steps:
            times, since = self._counts.get(step.key, (0, self._now))
            self._counts[step.key] = times + 1, since
            if times + 1 == MAX_REPEATS:
                return _LoopSign(
                    f"the same call was made {MAX_REPEATS} times with the same result: {self._named(step)}", since
                )
        return None

    def _error(self, steps: Iterable[_Attempt]) -> _LoopSign | None:
        failed: dict[int, _Attempt] = {}
        for step in steps:
            if step.result.is_error:
                self._failing[step.call_key] = key = _error_key(step)
                failed[key] = step
            elif solved := self._failing.pop(step.call_key, 0):
                self._errors.pop(solved, None)
        for key, step in failed.items():
            times, since = self._errors.get(key, (0, self._now))
            self._errors[key] = times + 1, since
            if times + 1 == MAX_REPEATS:
                return _LoopSign(f"the same error came {MAX_REPEATS} times: {_first_line(step.result)}", since)
        return None

    def _circle(self, steps: Iterable[_Attempt]) -> _LoopSign | None:
        if not any(step.again for step in steps):
            return None
        cycle = [step for step in self._recent if step.iteration >= self._counted_from]
        for length in range(2, MAX_CYCLE_CALLS + 1):
            keys = [step.key for step in cycle[-2 * length :]]
            calls = [step.call_key for step in cycle[-MAX_REPEATS * length :]]
            if _is_cycle(keys, length, 2) or _is_cycle(calls, length, MAX_REPEATS):
                names = ", ".join(self._named(step) for step in cycle[-length:])
                return _LoopSign(f"the same {length} calls are made in turn: {names}", cycle[-2 * length].iteration)
        return None

    def _in_a_row(self, steps: Sequence[_Attempt]) -> bool:
        """Whether the last iterations made the same calls, whatever their results."""
        calls = hash(frozenset(step.call_key for step in steps))
        self._row = self._row + 1 if calls == self._row_of else 1
        self._row_of = calls
        return self._row == MAX_REPEATS

    def _nothing_new(self) -> _LoopSign | None:
        if self._stale < MAX_STALE_ITERATIONS:
            return None
        return _LoopSign(f"the last {self._stale} iterations brought nothing new", self._now - self._stale + 1)

    def _climb(self, sign: _LoopSign) -> None:
        """Take the next step against a loop, and restart the counts."""
        since = max(sign.since, self._forgiven + 1)
        self._since = min(self._since, since) if self._rung else since
        self._rung += 1
        self._restart_counts()
        match self._rung:
            case 1:
                self.action = Proceed(
                    f"You seem to be stuck: {sign.what}. Before you go on, say in a sentence why that doesn't help, "
                    "and what you know by now. Then do something else, or answer with what you have."
                )
            case 2:
                self.action = Backtrack(
                    f"This led nowhere: {sign.what}:\n{self._tried()}\nTry another way.",
                    iterations=self._now - self._since + 1,
                )
            case 3:
                self.action = Escalate(
                    f"The agent is stuck: {sign.what}. What should it do instead?",
                    "Nobody can be asked. Answer now: what you found out, what you tried, and what is missing.",
                )
            case _:
                self.action = GiveUp(f"Stopped: the turn went round in circles: {sign.what}.")

    def _tried(self) -> str:
        latest = {step.call_key: step for step in self._recent if step.iteration >= self._since}
        steps = [*latest.values()][-_MAX_LISTED_CALLS:]
        return "\n".join(f"- {self._named(step)}: {_first_line(step.result)}" for step in steps)

    def _named(self, step: _Attempt) -> str:
        return f"`{_cut(self._show(step.call))}`"


def _is_cycle(keys: Sequence[int], length: int, rounds: int) -> bool:
    """Whether the last keys are the same few, not all alike, so many times over."""
    last = keys[-length:]
    return len(keys) == rounds * length and len(set(last)) > 1 and [*last] * rounds == [*keys]


def _error_key(step: _Attempt) -> int:
    """A key for an error, ignoring numbers; if only an exit code is left, the key of its call."""
    text = step.result.text
    words = re.sub(r"\[[^\]]*\]", "", text[:500] + text[500:][-500:])
    return hash(("error", re.sub(r"\d+", "#", words).strip() or step.call_key))


def _first_line(result: ToolResult) -> str:
    return _cut(next(filter(None, map(str.strip, result.text.splitlines())), "(nothing)"))


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_LINE_CHARS else f"{text[: _MAX_LINE_CHARS - 1]}…"
