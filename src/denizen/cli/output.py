"""Standard output, which holds results alone, and errors on standard error."""

import sys

import click

from denizen.cli.text import printable
from denizen.errors import DenizenError


def write(text: str) -> None:
    """Write a result at once. Raises DenizenError when that fails, BrokenPipeError when nobody reads any more."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DenizenError(f"Standard output can't be written: {error.strerror}.") from error


def say_error(error: DenizenError) -> None:
    """Say what went wrong."""
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(printable(str(error)), err=True)
