"""What models, tools and files say, made fit for a terminal: it can't paint there, and is no wider than it looks."""

import re
import unicodedata
from itertools import accumulate

_SEQUENCE = re.compile(
    r"""
      (?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]                          # CSI: colours, cursor
    | (?:\x1b[\]P^_X]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)  # OSC, DCS, …: titles, clipboard
    | \x1b[ -/]*[0-~]                                           # two characters and a little more
    """,
    re.VERBOSE,
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text without what could paint a terminal or turn text round: escape sequences, control characters.

    Tabs and new lines stay.
    """
    return _CONTROL.sub("", _SEQUENCE.sub("", text))


def one_line(text: str) -> str:
    """The text, printable, in one line."""
    return " ".join(printable(text).split())


def visible(text: str) -> str:
    r"""The text with everything that hides or reorders written out (`\x1b`, `\u202e`); tabs and new lines stay.

    For what a person is asked to approve: nothing may look like something else.
    """
    return "".join(c if c.isprintable() or c in "\t\n" else c.encode("unicode_escape").decode() for c in text)


def width(text: str) -> int:
    """The cells of a terminal that a line takes."""
    return sum(map(_cells, text))


def cut(text: str, cells: int) -> str:
    """As much of a line as fits into that many cells of a terminal, with an ellipsis where something is missing."""
    if width(text) <= cells:
        return text
    return text[: sum(end < cells for end in accumulate(map(_cells, text)))] + "…"


def pieces(text: str, cells: int) -> list[str]:
    """A line broken between words into lines of at most that many cells; a word that is longer is broken, too."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".lstrip()
        lines[-1:] = [longer] if width(longer) <= cells else [*filter(None, lines[-1:]), *_broken(word, cells)]
    return lines


def wrapped(text: str, cells: int) -> str:
    """The text with its longer lines broken between words; what goes on below is as far in as the line."""
    return "\n".join(part for line in text.split("\n") for part in _wrapped(line, cells))


def _wrapped(line: str, cells: int) -> list[str]:
    if width(line) <= cells:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    return [indent + piece for piece in pieces(line, max(cells - len(indent), 1))]


def _broken(word: str, cells: int) -> list[str]:
    lines = [""]
    for character in word:
        if width(lines[-1] + character) <= cells:
            lines[-1] += character
        else:
            lines.append(character)
    return lines


def shorten(text: str, *, lines: int, characters: int, how: str) -> str:
    """The beginning of a long text, and how much is missing; `how` says what shows the rest."""
    kept = "\n".join(text.split("\n")[:lines])[:characters]
    return text if len(kept) == len(text) else f"{kept}\n… {len(text) - len(kept):,} more characters: {how}"


def _cells(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
