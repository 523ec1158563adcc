"""Tables on standard output."""

import sys
from collections.abc import Iterable, Sequence

from denizen.cli.text import one_line

_UNLIMITED = 1000
"""Columns of a pipe: nothing is cut or folded there."""


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print rows under titles; those in `right` are for numbers. On a terminal they are fitted to its width."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else _UNLIMITED)
    table = Table(box=box.SIMPLE_HEAD if console.is_terminal else None, pad_edge=False, header_style="bold")
    for title in titles:
        table.add_column(title, justify="right" if title in right else "left", overflow="ellipsis", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    console.print(table)
