"""Text of a server → its lines: without colours, markers and wrapping; and what belongs together as a passage."""

import re
from collections.abc import Iterator, Sequence

import msgspec
from rich.cells import cell_len

MAX_LINE_BYTES = 1 << 16
"""Bytes of a line; the rest of a longer one is the next."""
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]"
)
_EDITOR_START = b"\x1b[?2004h"
"""Bracketed paste is turned on."""
_DIGITS = re.compile(r"\d+")
_UNWRAPPED_BELOW_CELLS = 50
"""Cells of a line that is so short that it wasn't wrapped: hardly a word is longer than the rest."""


class Markers(msgspec.Struct, frozen=True):
    """The lines by which a server frames output: of all that it says, and, within, of what a command prints."""

    start: str
    end: str
    printed: str
    printed_end: str


class Passage(msgspec.Struct, frozen=True):
    """Lines that the server wrote as one. `printed`: they are the output of our command for sure."""

    lines: Sequence[str]
    printed: bool = False


class LineReader:
    """Cuts text into passages. A line outside all markers is one by itself, and given out as soon as it is complete.

    `columns` is where the server wraps, 0: it doesn't.
    """

    def __init__(self, markers: Markers | None = None, columns: int = 0) -> None:
        self.columns = columns
        self.markers_seen: set[str] = set()
        self._markers = markers
        self._marker = re.compile("|".join(map(re.escape, msgspec.structs.astuple(markers)))) if markers else None
        self._unfinished = bytearray()
        self._prompt = self._last_tail = ""
        self._loose: list[str] = []  # lines outside markers that may have been one
        self._framed: list[str] | None = None
        self._is_told = self._printed = False

    def feed(self, text: bytes) -> Iterator[Passage]:
        """The passages that are complete now."""
        if b"\n" not in text and len(self._unfinished) + len(text) <= MAX_LINE_BYTES:
            self._unfinished += text
            return
        *whole, rest = bytes(self._unfinished + text).split(b"\n")
        for line in whole:
            for at in range(0, len(line) or 1, MAX_LINE_BYTES):
                yield from self._line(plain(line[at : at + MAX_LINE_BYTES]))
        while len(rest) > MAX_LINE_BYTES:
            yield from self._line(plain(rest[:MAX_LINE_BYTES]))
            rest = rest[MAX_LINE_BYTES:]
        self._unfinished = bytearray(rest)

    def prompt(self) -> Iterator[Passage]:
        """The passages that end here, since the server waits; text without a line end was its prompt."""
        self._unfinished.clear()
        yield from self._finish()
        yield from self.settle()

    def quiet(self) -> Iterator[Passage]:
        """All there is, from a server that doesn't mark its prompts and has been silent for a while.

        Text without a line end is its prompt from now on, if it has no words or came twice, numbers aside.
        """
        tail, shape, last = self.tail, _shape(self.tail), self._last_tail
        yield from self.prompt()
        if not tail:
            return
        self._last_tail = shape
        if shape == last or not any(map(str.isalnum, tail)):
            self._prompt = shape
        else:
            yield Passage([tail])

    @property
    def tail(self) -> str:
        """The text without a line end."""
        return plain(bytes(self._unfinished)).strip()

    @property
    def is_at_prompt(self) -> bool:
        """Whether that is the prompt of a server that doesn't mark it."""
        return bool(self._prompt) and _shape(self.tail) == self._prompt

    def settle(self) -> Iterator[Passage]:
        """The lines held back because the next might have been their continuation."""
        if self._loose:
            whole = unwrapped(self._loose, self.columns)
            self._loose.clear()
            yield Passage(whole)

    @property
    def holds_line(self) -> bool:
        """Whether a line is held back."""
        return bool(self._loose)

    @property
    def holds_question(self) -> bool:
        """Whether the server draws a line editor: it asks something, and reads keys in place of a line."""
        return _EDITOR_START in self._unfinished

    @property
    def holds_text(self) -> bool:
        """Whether there is text without a line end."""
        return bool(self._unfinished)

    def _line(self, line: str) -> Iterator[Passage]:
        found = self._marker.search(line) if self._marker else None
        if not found or not self._markers:
            yield from self._text(line)
            return
        marker, before, after = found[0], line[: found.start()], line[found.end() :]
        self.markers_seen.add(marker)
        if before and self._framed is not None:
            self._framed.append(before)  # outside, it is the prompt
        match marker:
            case self._markers.start:
                yield from self._finish()
                yield from self.settle()
                self._framed = []
                self._is_told = True
            case self._markers.printed:
                if self._framed is None:
                    yield from self.settle()
                    self._framed = []
                self._printed = True
            case self._markers.printed_end if self._is_told:
                pass  # the other end follows
            case _:
                yield from self._finish()
        if after:
            yield from self._line(after)

    def _text(self, line: str) -> Iterator[Passage]:
        if self._framed is not None:
            self._framed.append(line)
            return
        if self._loose and not continues(self._loose[-1], line, self.columns):
            yield from self.settle()
        self._loose.append(line)
        if not self.columns or cell_len(line) < _UNWRAPPED_BELOW_CELLS:
            yield from self.settle()

    def _finish(self) -> Iterator[Passage]:
        """End the frame, whether its end has come or not."""
        if self._framed:
            yield Passage(unwrapped(self._framed, self.columns), self._printed)
        self._framed, self._is_told, self._printed = None, False, False


def _shape(prompt: str) -> str:
    return _DIGITS.sub("0", prompt)


def plain(line: bytes) -> str:
    """A line's text without colours and control characters; what isn't UTF-8 is read as Latin-1."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text = line.decode("latin-1")
    return _ESCAPES.sub("", text)


def unwrapped(lines: Sequence[str], columns: int) -> list[str]:
    """The lines as they were before they were wrapped at `columns`: where the next word had no room, they go on."""
    whole: list[str] = []
    for last, line in zip(["", *lines], lines, strict=False):
        if whole and continues(last, line, columns):
            cut = cell_len(last) == columns and " " not in last
            whole[-1] = f"{whole[-1].rstrip()}{'' if cut else ' '}{line}"
        else:
            whole.append(line)
    return whole


def continues(last: str, line: str, columns: int) -> bool:
    """Whether `line` is where `last` was wrapped."""
    if not columns or not last or not line or line[0].isspace():
        return False
    used = cell_len(last.rstrip())
    return used <= columns < used + 1 + cell_len(line.split(maxsplit=1)[0])
