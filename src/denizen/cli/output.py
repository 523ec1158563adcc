"""What commands print and ask: results on standard output, everything else on standard error."""

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from denizen.cli.text import UNLIMITED, cut, one_line, printable, width, wrapped
from denizen.errors import ConfigError, DenizenError, SessionError

_COLUMN_GAP = 2  # cells between the columns of a table
_MIN_CELLS, _READABLE_CELLS = 10, 30  # cells of its elastic column: at least; what is enough to be read


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


def write_json(*values: Any, enc_hook: Callable[[Any], Any] | None = None) -> None:
    """Write each value as one line of JSON; letters that JSON can't hold, as in odd file names, are replaced."""
    import msgspec

    from denizen.config.redact import map_text

    encoder = msgspec.json.Encoder(enc_hook=enc_hook)
    for value in values:
        try:
            line = encoder.encode(value)
        except UnicodeEncodeError:
            line = encoder.encode(map_text(value, lambda text: text.encode(errors="replace").decode()))
        write(line.decode() + "\n")


def write_markdown(text: str) -> None:
    """Write Markdown: rendered on a terminal, elsewhere as it is."""
    if sys.stdout.isatty():
        from denizen.cli.markdown import rendered

        text = "\n".join(rendered(text, output_width()))
    write(text if text.endswith("\n") or not text else f"{text}\n")


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
    columns = {title: [title, *map(one_line, cells)] for title, *cells in zip(titles, *rows, strict=True)}
    widths = {title: max(map(width, cells)) for title, cells in columns.items()}

    def excess() -> int:
        return sum(widths.values()) + _COLUMN_GAP * (len(widths) - 1) - output_width()

    for title in spare:
        if excess() > max(widths[elastic] - _READABLE_CELLS, 0):
            del columns[title], widths[title]
    if elastic:
        widths[elastic] = max(widths[elastic] - max(excess(), 0), min(widths[elastic], _MIN_CELLS))
    lines: list[str] = []
    for row in zip(*columns.values(), strict=True):
        cells = {title: cut(cell, widths[title]) for title, cell in zip(columns, row, strict=True)}
        spaces = {title: " " * (widths[title] - width(cell)) for title, cell in cells.items()}
        padded = [spaces[title] + cell if title in right else cell + spaces[title] for title, cell in cells.items()]
        lines.append(
            click.style(cut((" " * _COLUMN_GAP).join(padded).rstrip(), output_width()), bold=not lines or None) + "\n"
        )
    write("".join(lines))


def output_width() -> int:
    """The cells of a line on standard output."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else UNLIMITED


def error_width() -> int:
    """The cells of a line on standard error."""
    if not sys.stderr.isatty():
        return UNLIMITED
    return os.get_terminal_size(sys.stderr.fileno()).columns or 80


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


def say(text: str, colour: str | None = None, *, dim: bool = False) -> None:
    """Write lines on standard error, none wider than the terminal."""
    click.secho(wrapped(text, error_width()), fg=colour, dim=dim or None, err=True)


def say_error(error: DenizenError) -> None:
    """Say what went wrong, with sessions as they are called at the terminal."""
    words = str(error)
    if isinstance(error, SessionError):
        from denizen.cli.home import KEY_BEFORE_NAME

        words = words.replace(KEY_BEFORE_NAME, "")
    begin = "error: "
    click.secho(begin, fg="red", bold=True, nl=False, err=True)
    click.echo(wrapped(f"{begin}{printable(words)}", error_width()).removeprefix(begin), err=True)


def question_stream() -> TextIO | None:
    """Where questions are seen: standard error, else standard output; None where neither is a terminal."""
    return next((stream for stream in (sys.stderr, sys.stdout) if stream.isatty()), None)


def is_interactive() -> bool:
    """Whether a person sees a question and can answer it."""
    return sys.stdin.isatty() and question_stream() is not None


def confirm(question: str, about: str = "", *, abort: bool = False) -> bool:
    """Whether the person says yes to the question, below what it is `about`.

    With `abort`, raises click.Abort for anything but yes.
    """
    if about:
        click.echo(wrapped(about, error_width()), question_stream())
    click.echo(f"{question} [y/N]: ", question_stream(), nl=False)
    answer = ""
    try:
        answer = sys.stdin.readline()
    finally:
        if not answer:
            click.echo(file=question_stream())  # what is said next begins a line
    if answer.strip().lower() in {"y", "yes"}:
        return True
    if abort:
        raise click.Abort
    return False


def accept_change(
    question: str, difference: str = "", *, yes: bool, refusal: str = "Add --yes: nobody can be asked here."
) -> None:
    """Ask the person whether to accept what changed, unless they said `yes`. Raises click.Abort for anything else."""
    if yes:
        return
    if not is_interactive():
        raise click.UsageError(refusal)
    confirm(question, printable(difference), abort=True)


def ask_to_delete(question: str = "Delete this permanently?", about: str = "", *, yes: bool) -> None:
    """Ask the person whether to delete something, unless they said `yes`. Raises click.Abort for anything else."""
    refusal = "Deleting can't be undone, and without a terminal nobody can be asked: add --yes."
    accept_change(question, about, yes=yes, refusal=refusal)
