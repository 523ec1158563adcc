"""`denizen sessions`: the conversations that are kept."""

import asyncio
import os
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

import click
import msgspec

from denizen.cli.asking import confirm, somebody_there
from denizen.cli.home import short_name, store
from denizen.cli.markdown import markdown
from denizen.cli.output import write, write_file, write_markdown
from denizen.cli.table import print_table
from denizen.cli.text import cut, printable, width
from denizen.clock import SystemClock
from denizen.config.home import user_folder
from denizen.entries import AnyEntry
from denizen.ports import SessionInfo
from denizen.sessions import new_name

TITLES = ("name", "when", "model", "tokens", "cost", "ended", "folder", "title")

FOLDER = 28
"""Cells of a folder on a terminal."""


@click.group()
def sessions() -> None:
    """The conversations that are kept, in the home.

    A session has the name that --session gave it, or one made of the time; one of another channel, its whole key.
    """


@sessions.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with every detail.")
def list_sessions(as_json: bool) -> None:
    """All sessions, the latest first."""
    print_sessions(asyncio.run(store().list()), as_json=as_json)


def print_sessions(found: Sequence[SessionInfo], *, as_json: bool = False) -> None:
    """Sessions, as a table or as lines of JSON."""
    if as_json:
        write("".join(msgspec.json.encode(info).decode() + "\n" for info in found))
    elif found:
        print_table(
            TITLES,
            [_row(info, datetime.now().astimezone()) for info in found],
            elastic="title",
            right=("tokens", "cost"),
            spare=("tokens", "model", "cost"),
        )
    else:
        click.echo("There are no sessions yet.", err=True)


@sessions.command()
@click.argument("name")
@click.option("--all", "whole", is_flag=True, help="Long results too, and what the model thought.")
def show(name: str, whole: bool) -> None:
    """A conversation, for reading; long results are shortened."""
    for paragraph in markdown(_read(name), whole=whole):
        write_markdown(printable(paragraph))
        write("\n")


@sessions.command()
@click.argument("name")
@click.argument("to", required=False)
@click.option("--at", default="", metavar="ENTRY", help="Only up to this entry (`export` shows their ids).")
def fork(name: str, to: str | None, at: str) -> None:
    """Begin another session with all of this one; prints its name."""
    to = to or new_name(SystemClock())
    asyncio.run(store().fork(name, to, at=at))
    write(f"{to}\n")


@sessions.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@click.option("--yes", is_flag=True, help="Don't ask.")
def rm(names: tuple[str, ...], yes: bool) -> None:
    """Delete sessions for good."""
    if not yes:
        if not somebody_there():
            raise click.UsageError("Deleting is for good: say --yes where nobody can be asked.")
        confirm(f"Delete {', '.join(names)} for good?", abort=True)
    for name in names:
        asyncio.run(store().remove(name))


@sessions.command()
@click.argument("name")
@click.option("--format", "kind", type=click.Choice(["jsonl", "markdown"]), default="jsonl", show_default=True)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file, for you alone.")
def export(name: str, kind: Literal["jsonl", "markdown"], output: Path | None) -> None:
    """The whole conversation: its entries as JSON lines, or Markdown."""
    entries = _read(name)
    if kind == "jsonl":
        text = "".join(msgspec.json.encode(entry).decode() + "\n" for entry in entries)
    else:
        text = "\n\n".join(markdown(entries, whole=True)) + "\n"
    if output:
        write_file(output, text.encode())
    else:
        write(text if kind == "jsonl" else printable(text))


def _read(name: str) -> Sequence[AnyEntry]:
    return asyncio.run(store().read(name))


def _row(info: SessionInfo, now: datetime) -> tuple[str, ...]:
    return (
        _name(info.key),
        _when(datetime.fromtimestamp(info.updated).astimezone(), now),
        info.model,
        f"{info.tokens:,}" if info.tokens else "",
        f"${info.cost_usd:.4f}" if info.cost_usd else "",
        info.stop_reason.replace("_", " "),
        _folder(info.workspace),
        info.title,
    )


def _name(key: str) -> str:
    """A session's name; on a terminal beginning and end of one that would leave no room for the rest."""
    name, half = short_name(key), max(shutil.get_terminal_size().columns // 8, 10)
    return name if width(name) <= 2 * half or not sys.stdout.isatty() else f"{cut(name, half)}{name[-half:]}"


def _folder(path: str) -> str:
    """A folder as a person writes it; on a terminal the end of a long one."""
    own = f"{user_folder(os.environ)}/"
    path = f"~/{path[len(own) :]}" if path.startswith(own) else path
    if not sys.stdout.isatty():
        return path
    parts = path.split("/")
    while width("/".join(parts)) > FOLDER and len(parts) > 2:
        parts[:2] = ["…"]
    return "/".join(parts)


def _when(then: datetime, now: datetime) -> str:
    """A time as short as can be: of today the hour, else the day."""
    return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%Y-%m-%d}"
