"""Attributes each passage: to the output of the command in flight, or to the unsolicited lines.

GMCP names the talkers of pages and speech, but a message and its text may come in either order, before or after the
prompt of a command that has nothing to do with them. All here is computed from what came and when.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from denizen.worlds.moo.late_output import follow_up_state, is_complete
from denizen.worlds.moo.lines import Passage
from denizen.worlds.moo.server_text import CommandOutput, Room, ServerLine
from denizen.worlds.moo.speech import SpokenMessage, is_connection_notice, looks_spoken, names_in


class OutputTiming(msgspec.Struct, frozen=True):
    """Seconds to wait: for what comes late, and for what may never come."""

    timeout: float = 40.0
    """For the prompt after a command; DjangoMOO itself gives up after 30."""
    late: float = 5.0
    """For what is known to come after a prompt, and for the first line of a command that has given none."""
    settle: float = 0.3
    """After the last line of that, and after the prompt of a command that only told something: more may be late."""
    proof: float = 1.0
    """For GMCP's word on a line that someone seems to have said."""
    text: float = 5.0
    """For the line of a GMCP message."""
    quiet: float = 0.6
    """After the last text of a server that doesn't mark its prompts, until it counts as waiting."""
    silence: float = 3.0
    """For the first text of such a server's answer."""


_ARRIVED = re.compile(r"You (?:arrive at #(\d+) \((.+)\)|(?:move to|are now in) (.+) \(#(\d+)\))\.$")


class _Flight:
    """The command in flight."""

    def __init__(self, command: str, now: float) -> None:
        self.command = command
        self.passages: list[Passage] = []
        self.sent_at = self.last_at = now
        self.marked_at: float | None = None
        self.problem = ""
        self._is_echoed = False

    def is_echo(self, passage: Passage) -> bool:
        """Whether the passage is the command itself, come back after a prompt, for the first time."""
        line = passage.lines[0] if passage.lines else ""
        before = line.removesuffix(self.command)
        is_it = bool(self.command) and before != line and not any(map(str.isalnum, before)) and not self._is_echoed
        self._is_echoed |= is_it
        return is_it

    def take(self, passage: Passage, now: float) -> None:
        self.passages.append(passage)
        self.last_at = now

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for passage in self.passages for line in passage.lines]


class Attribution:
    """Sorts passages; time is passed in. `outputs` and `lines` collect what is decided, for their reader to take."""

    def __init__(self, timing: OutputTiming | None = None) -> None:
        self.timing = timing or OutputTiming()
        self.outputs: deque[CommandOutput] = deque()
        self.lines: deque[ServerLine] = deque()
        self.name = ""
        self.room: Room | None = None
        self.marks_prompts = False
        self.shows_prompts = False
        """Whether its last answer ended with a prompt that it doesn't mark."""
        self.is_signing_in = False
        """Whether the sign-in isn't over: nobody can have said a line yet, and the first text may take long."""
        self.echoes = False
        """Whether a command comes back as a line, as on a terminal."""
        self.frames = False
        """Whether the server frames what our commands print: what it doesn't frame may be anybody's."""
        self.proves = False
        """Whether the server names talkers: then a line without a named talker proves nothing."""
        self.owed = 0
        """Prompts that are still to come for commands that timed out."""
        self._flight: _Flight | None = None
        self._messages: list[tuple[float, SpokenMessage]] = []
        self._unproven: list[tuple[float, Passage]] = []
        self._others: set[str] = set()

    def sent(self, command: str, now: float) -> None:
        """A command is in flight now."""
        self._flight = _Flight(command, now)

    def passage(self, passage: Passage, now: float) -> None:
        """Lines came."""
        if self._flight and self.echoes and self._flight.is_echo(passage):
            return
        self._others.update(*map(names_in, passage.lines))
        self._others -= {self.name, "You"}
        whose = "own" if passage.printed else self._whose(passage)
        if not passage.printed and self._say_if(passage, SpokenMessage.is_in):
            return
        if self.proves and whose == "unclear":
            self._unproven.append((now + self.timing.proof, passage))
        elif self._flight and whose != "other":
            self._flight.take(passage, now)
            self._note_arrival(passage.lines)
        else:
            self.tell(passage.lines)

    def message(self, message: SpokenMessage, now: float) -> None:
        """Take in a message that GMCP reports with its talker."""
        self.proves = True
        if message.talker == self.name and message.channel != "page":
            return  # our own words come back as a line that is known by its form
        self._others.add(message.talker)
        if not message.text:
            self._say(message, Passage(()))
            return
        for pair in self._unproven:
            if message.is_in(pair[1]):
                self._unproven.remove(pair)
                self._say(message, pair[1])
                return
        passages = self._flight.passages if self._flight else []
        for passage in passages:
            if not passage.printed and message.is_in(passage):
                passages.remove(passage)
                self._say(message, passage)
                return
        self._messages.append((now + self.timing.text, message))

    def trouble(self, problem: str) -> None:
        """The output of the command in flight won't be whole."""
        if self._flight:
            self._flight.problem = problem

    def prompt(self, now: float, *, is_marked: bool = True) -> None:
        """The server waits, by a mark after its prompt or by that prompt alone."""
        self.marks_prompts |= is_marked
        self.shows_prompts = True
        if self.owed:
            self.owed -= 1
        elif self._flight and self._flight.marked_at is None:
            self._flight.marked_at = now
        self.pass_time(now)

    def pass_time(self, now: float) -> None:
        """Decide what has waited long enough."""
        while self._unproven and self._unproven[0][0] <= now:
            _, passage = self._unproven.pop(0)
            if self._say_if(passage, SpokenMessage.may_be):
                continue
            if self._flight and not self.frames and not self._starts_with_other(passage):
                self._flight.take(passage, now)
            else:
                self.tell(passage.lines)
        while self._messages and self._messages[0][0] <= now:
            self._say(self._messages.pop(0)[1], Passage(()))
        flight = self._flight
        if flight and (due := self._due(flight)) is not None and due <= now:
            is_cut = flight.marked_at is None and self.marks_prompts
            self.owed += is_cut
            late = f"no prompt came within {self.timing.timeout:g} s: the output may be incomplete"
            self._land(late if is_cut else "")

    @property
    def names_talkers(self) -> bool:
        """Whether the server names the talker of all that is said, as DjangoMOO does; others name those of channels."""
        return self.proves and self.frames

    @property
    def next_due(self) -> float | None:
        """The next time at which `pass_time` has something to decide, or None."""
        times = [self._unproven[0][0]] if self._unproven else []
        times += [self._messages[0][0]] if self._messages else []
        if self._flight and (due := self._due(self._flight)) is not None:
            times.append(due)
        return min(times, default=None)

    def abandon(self) -> None:
        """Nobody waits for the output of the command in flight any more: its lines are lines like others."""
        if flight := self._flight:
            self._flight = None
            self.owed += flight.marked_at is None and self.marks_prompts
            self.tell(flight.lines)

    def end(self, problem: str) -> None:
        """The connection is over: nothing waits any more."""
        for _, passage in self._unproven:
            self.tell(passage.lines)
        for _, message in self._messages:
            self._say(message, Passage(()))
        self._unproven.clear()
        self._messages.clear()
        if self._flight:
            self._land("" if self._flight.command.lower() in {"@quit", "quit"} else problem)

    def _land(self, problem: str) -> None:
        flight, self._flight = self._flight, None
        if flight:
            self.shows_prompts = flight.marked_at is not None
            lines = flight.lines
            while lines and not lines[-1]:
                lines.pop()
            self.outputs.append(CommandOutput(flight.command, lines, problem or flight.problem))

    def _due(self, flight: _Flight) -> float | None:
        """When the command's output counts as whole."""
        timing = self.timing
        latest = flight.sent_at + timing.timeout
        if flight.marked_at is None:
            has_begun = bool(flight.passages)
            if self.marks_prompts or (not has_begun and (self.is_signing_in or self.shows_prompts)):
                return latest
            is_slow = self.shows_prompts or not has_begun
            return min(latest, flight.last_at + (timing.silence if is_slow else timing.quiet))
        marked_at = flight.marked_at if self.frames else max(flight.marked_at, flight.last_at)
        due = marked_at + self._longer(flight)
        if follow_up_state(flight.command, flight.lines) == "came":
            due = max(due, flight.last_at + timing.settle)
        return max(due, *(until for until, _ in self._unproven)) if self._unproven and not self.frames else due

    def _longer(self, flight: _Flight) -> float:
        """Seconds that the output may go on after the prompt."""
        lines, timing = flight.lines, self.timing
        if follow_up_state(flight.command, lines) == "awaited" or not (lines or self.is_signing_in):
            return timing.late
        if not self.frames:
            return timing.settle  # lines of others have prompts, too
        if any(passage.printed for passage in flight.passages):
            return 0.0
        return 0.0 if is_complete(flight.command, lines[0]) else timing.settle

    def _whose(self, passage: Passage) -> Literal["own", "other", "unclear"]:
        """The source of a passage without proof, judging by its form, if a command is in flight."""
        first = passage.lines[0] if passage.lines else ""
        if first.startswith("You") and not first.startswith("You sense that "):
            return "own"
        if self.name and first.startswith(f"{self.name} "):
            return "own"
        if self._starts_with_other(passage):
            return "unclear" if self.proves and not is_connection_notice(first) else "other"
        return "unclear" if looks_spoken(first) else "own"

    def _starts_with_other(self, passage: Passage) -> bool:
        first = passage.lines[0] if passage.lines else ""
        if names_in(first):
            return is_connection_notice(first)
        return any(first.startswith((f"{name} ", f"{name}: ")) for name in self._others)

    def _say_if(self, passage: Passage, fits: Callable[[SpokenMessage, Passage], bool]) -> bool:
        """Publish the first message that fits the passage; False if none does."""
        for pair in self._messages:
            if fits(pair[1], passage):
                self._messages.remove(pair)
                self._say(pair[1], passage)
                return True
        return False

    def _say(self, message: SpokenMessage, passage: Passage) -> None:
        """A line that is proven; what the talker had put before it in a page proves nothing."""
        if message.channel == "page":
            before = [line for line in passage.lines if not re.search(r' pages?, "', line)]
            self.tell(before[:1], is_written=True)
        self.lines.append(message.line(" ".join(passage.lines)))

    def tell(self, lines: Iterable[str], *, is_written: bool = False) -> None:
        """Publish lines that no command asked for and no proof attributes."""
        kept = [line.rstrip() for line in lines if line.strip()]
        self.lines.extend(ServerLine(line, is_unproven=self.names_talkers, is_written=is_written) for line in kept)

    def _note_arrival(self, lines: Sequence[str]) -> None:
        for line in lines:
            if found := _ARRIVED.match(line):
                number, name = found[1] or found[4], found[2] or found[3]
                if not self.room or self.room.num != number:
                    self.room = Room(number, name)
