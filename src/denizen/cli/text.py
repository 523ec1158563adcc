"""Text for a terminal: safe to print there, and no wider than it looks."""

from denizen.text.printable import printable

UNLIMITED = 100_000
"""Cells of a line in a pipe: more than is ever needed."""


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
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, cells: int) -> str:
    """As much of a line as fits into that many cells of a terminal, with an ellipsis where something is missing."""
    if 2 * len(text) <= cells or width(text) <= cells:  # no character takes more than two
        return text
    from rich.cells import chop_cells

    return chop_cells(text, cells - 1)[0] + "…"


def cut_before(text: str, ending: str, cells: int, least: int = 30) -> str:
    """Both in a line of at most that many cells; the text gives way, but for its first `least` cells."""
    return cut(cut(text, max(cells - width(ending), least)) + ending, cells)


def wrapped(text: str, cells: int) -> str:
    """The text with its longer lines broken between words; continuation lines are indented like their line."""
    lines: list[str] = []
    for line in text.split("\n"):
        if width(line) <= cells:
            lines.append(line)
            continue
        from denizen.text.wrapping import wrap_line

        words = line.lstrip()
        indent = line[: len(line) - len(words)]
        lines += [indent + part.rstrip() for part in wrap_line(words, max(cells - len(indent), 1))]
    return "\n".join(lines)


def shorten(text: str, *, lines: int, characters: int, how: str) -> str:
    """The beginning of a long text, and how much is missing; `how` says what shows the rest."""
    kept = "\n".join(text.split("\n")[:lines])[:characters]
    return text if len(kept) == len(text) else f"{kept}\n… {len(text) - len(kept):,} more characters: {how}"
