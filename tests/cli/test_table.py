"""Tables: a column gives way to what the terminal has room for."""

import os
import pty
import subprocess
import sys

import click

PRINTS = """
import sys
from denizen.cli.output import print_table
rows = [("error", "a.py:7", sys.argv[1]), ("note", "b.py", "ok")]
print_table(("severity", "place", "finding"), rows, elastic="finding")
"""


def test_on_a_terminal_what_is_too_wide_is_cut() -> None:
    screen, terminal = pty.openpty()
    command = [sys.executable, "-c", PRINTS, "the password is written to the log"]
    subprocess.run(command, stdout=terminal, env=os.environ | {"COLUMNS": "40"}, check=True)
    text = os.read(screen, 10_000).decode()
    os.close(screen)
    os.close(terminal)
    assert click.unstyle(text).splitlines()[1] == "error     a.py:7  the password is writt…"


def test_in_a_pipe_nothing_is_cut() -> None:
    command = [sys.executable, "-c", PRINTS, "word " * 100]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [line.count("word") for line in printed.splitlines()] == [0, 100, 0]
