"""Tables: a column gives way to what the terminal has room for, cut or in further lines."""

import os
import pty
import subprocess
import sys

import click

from denizen.cli.table import table

PRINTS = """
import sys
from denizen.cli.table import table
rows = [("error", "a.py:7", sys.argv[1]), ("note", "b.py", "ok")]
print(table(("severity", "place", "finding"), rows, elastic="finding", wrap=sys.argv[2] == "True"), end="")
"""


def lines(finding: str, *, wrap: bool) -> list[str]:
    """The rows of a table with that finding on a terminal of 40 columns."""
    screen, terminal = pty.openpty()
    command = [sys.executable, "-c", PRINTS, finding, str(wrap)]
    subprocess.run(command, stdout=terminal, env=os.environ | {"COLUMNS": "40"}, check=True)
    text = os.read(screen, 10_000).decode()
    os.close(screen)
    os.close(terminal)
    return click.unstyle(text).splitlines()[1:]


def test_what_is_too_wide_is_cut() -> None:
    assert lines("the password is written to the log", wrap=False)[0] == "error     a.py:7  the password is writt…"


def test_what_is_too_wide_goes_on_below_itself() -> None:
    assert lines("the password is written to the log", wrap=True) == [
        "error     a.py:7  the password is",
        "                  written to the log",
        "note      b.py    ok",
    ]


def test_a_word_that_is_too_wide_is_broken() -> None:
    assert lines("see https://example.com/a/long/page", wrap=True)[:3] == [
        "error     a.py:7  see",
        "                  https://example.com/a/",
        "                  long/page",
    ]


def test_in_a_pipe_every_row_is_a_line() -> None:
    rows = [("a", "word " * 100)]
    assert [line.count("word") for line in table(("x", "y"), rows, elastic="y", wrap=True).splitlines()] == [0, 100]
