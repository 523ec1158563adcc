"""Where a person sees what is asked, and yes-or-no questions of commands."""

import sys
from collections.abc import Iterable
from typing import TextIO

import click

from denizen.cli.text import wrapped


def screen() -> TextIO | None:
    """Where questions are seen: standard error, else standard output; None where neither is a terminal."""
    return next((stream for stream in (sys.stderr, sys.stdout) if stream.isatty()), None)


def somebody_there() -> bool:
    """Whether a person sees a question and can answer it."""
    return sys.stdin.isatty() and screen() is not None


def confirm(question: str, about: Iterable[str] = (), *, abort: bool = False) -> bool:
    """Whether the person, who sees these lines, says yes; with `abort` anything else is the end. Raises click.Abort."""
    from denizen.cli.passing import columns

    for line in about:
        click.echo(wrapped(line, columns()), screen())
    click.echo(f"{question} [y/N]: ", screen(), nl=False)
    answer = ""
    try:
        answer = sys.stdin.readline()
    finally:
        if not answer:
            click.echo(file=screen())  # what is said next begins a line
    if answer.strip().lower() in {"y", "yes"}:
        return True
    if abort:
        raise click.Abort
    return False
