"""Tables on standard output."""

import shutil
import sys
from collections.abc import Iterable, Sequence

import click

from denizen.cli.output import write
from denizen.cli.text import cut, one_line, width

_GAP = 2
_LEAST = 10
_READABLE = 30
_UNLIMITED = 100_000
"""Cells of a pipe: nothing is cut there."""


def print_table(
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    elastic: str = "",
    right: Sequence[str] = (),
    spare: Sequence[str] = (),
) -> None:
    """Print rows under titles; those in `right` are for numbers.

    On a terminal the column `elastic` gives way; those in `spare` are left out, the first one first, where it would get
    too narrow to be read.
    """
    cells = [[one_line(cell) for cell in row] for row in (titles, *rows)]
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else _UNLIMITED
    titles, *_ = cells = _with_room(cells, elastic, spare, columns)
    widths = _widths(cells)
    if elastic:
        place = titles.index(elastic)
        excess = sum(widths) + _GAP * (len(widths) - 1) - columns
        widths[place] = min(widths[place], max(widths[place] - excess, _LEAST))
    lines: list[str] = []
    for number, row in enumerate(cells):
        fitted = zip(titles, row, widths, strict=True)
        line = (" " * _GAP).join(_padded(cell, room, right=title in right) for title, cell, room in fitted)
        lines.append(click.style(cut(line.rstrip(), columns), bold=number == 0) + "\n")
    write("".join(lines))


def _with_room(cells: list[list[str]], elastic: str, spare: Sequence[str], columns: int) -> list[list[str]]:
    """The columns without those that must be spared for the elastic one to be readable."""
    for title in spare:
        titles, widths = cells[0], _widths(cells)
        wanted = widths[titles.index(elastic)]
        if sum(widths) + _GAP * (len(widths) - 1) - max(wanted - _READABLE, 0) <= columns:
            break
        cells = [row[: titles.index(title)] + row[titles.index(title) + 1 :] for row in cells]
    return cells


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Cells that each column wants."""
    return [max(map(width, column)) for column in zip(*rows, strict=True)]


def _padded(cell: str, room: int, *, right: bool) -> str:
    cell = cut(cell, room)
    space = " " * (room - width(cell))
    return space + cell if right else cell + space
