"""Standard output, which holds results alone, and errors on standard error."""

import os
import sys
from pathlib import Path

import click

from denizen.cli.text import printable
from denizen.errors import ConfigError, DenizenError, SessionError


def write(text: str) -> None:
    """Write a result at once; its colours stay on a terminal only.

    Raises DenizenError when that fails, BrokenPipeError when nobody reads any more.
    """
    try:
        click.echo(text, nl=False)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise not_written(error) from error


def write_markdown(text: str) -> None:
    """Write Markdown: rendered on a terminal, elsewhere as it is."""
    if sys.stdout.isatty():
        from denizen.cli.rendering import rendered

        text = "\n".join(rendered(text, terminal_size().columns))
    write(text if text.endswith("\n") or not text else f"{text}\n")


def terminal_size() -> os.terminal_size:
    """The size of the terminal that standard output is."""
    size = os.get_terminal_size(sys.stdout.fileno())
    return size if size.columns else os.terminal_size((80, 24))


def write_file(path: Path, data: bytes) -> None:
    """Write a file that the user named, for them alone; into a pipe or a device as it is. Raises ConfigError."""
    from denizen.config.files import write_private

    if path.is_file() or not path.exists():
        write_private(path, data)
        return
    try:
        path.write_bytes(data)
    except OSError as error:
        raise ConfigError(f"{path} can't be written: {error.strerror}.") from error


def not_written(error: OSError) -> DenizenError:
    """What to say of standard output that failed."""
    return DenizenError(f"Standard output can't be written: {error.strerror}.")


def say_error(error: DenizenError) -> None:
    """Say what went wrong."""
    click.secho("error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(printable(_named(error)), err=True)


def _named(error: DenizenError) -> str:
    """Its words, with sessions as they are called at the terminal."""
    if not isinstance(error, SessionError):
        return str(error)
    from denizen.cli.home import KEY_BEFORE_NAME

    return str(error).replace(KEY_BEFORE_NAME, "")
