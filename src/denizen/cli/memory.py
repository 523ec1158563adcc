"""`denizen memory`: list, search, forget, export or import what is remembered."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
import msgspec

from denizen.cli.output import ask_to_delete, print_table, write, write_file, write_json
from denizen.cli.text import one_line, printable
from denizen.config.load import load
from denizen.config.redact import Redactor
from denizen.memory import LongTermMemory, open_memory
from denizen.ports import Fact
from denizen.runtime.clock import SystemClock
from denizen.runtime.postgres import PostgresDatabase
from denizen.text.plural import counted


def _scoped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose whose facts are meant."""
    user = click.option("--user", "only", flag_value="u", help="Only facts that hold wherever you work.")
    project = click.option("--project", "only", flag_value="p", help="Only facts of this workspace.")
    return project(user(command))


_shared = click.option(
    "--database", metavar="URL", help="Use the facts that machines share in this PostgreSQL database."
)


@click.group()
def memory() -> None:
    """The remembered facts: of this workspace, about you, and in MEMORY.md."""


@memory.command("list")
@_scoped
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with every detail.")
@_shared
def list_facts(database: str | None, only: str | None, as_json: bool) -> None:
    """List all facts, the latest first."""
    facts = _memory(database).facts()
    _print(_of(facts, only), none="that matches" if facts else "yet", as_json=as_json)


@memory.command(short_help="List the facts that match best, best first.")
@click.argument("query", nargs=-1, required=True, metavar="QUERY…")
@_scoped
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, help="Maximum number of facts.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with every detail.")
@_shared
def search(query: tuple[str, ...], database: str | None, only: str | None, limit: int, as_json: bool) -> None:
    """List the facts that match best, best first, as `recall` would find them."""
    remembered = _memory(database)
    found = asyncio.run(remembered.recall(" ".join(query), len(remembered.facts()) if only else limit))
    _print(_of(found, only)[:limit], none="that matches", as_json=as_json)


@memory.command(short_help="Delete facts permanently.")
@click.argument("what", nargs=-1, required=True, metavar="WHAT…")
@click.option("--yes", is_flag=True, help="Don't ask.")
@_shared
def forget(what: tuple[str, ...], database: str | None, yes: bool) -> None:
    """Delete facts permanently, each named by its id, its text, or words that only it has."""
    remembered = _memory(database)
    facts = [remembered.find(each) for each in what]
    ask_to_delete(about="\n".join(one_line(fact.text) for fact in facts), yes=yes)
    for fact in facts:
        write(one_line(asyncio.run(remembered.forget(fact.text))) + "\n")


@memory.command()
@_scoped
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file, readable by you alone."
)
@_shared
def export(database: str | None, only: str | None, output: Path | None) -> None:
    """Print all facts as JSON lines, with every detail."""
    facts = _of(_memory(database).facts(), only)
    if output:
        write_file(output, b"".join(msgspec.json.encode(fact) + b"\n" for fact in facts))
        click.echo(f"{counted(len(facts), 'fact')} written to {printable(str(output))}.", err=True)
    else:
        write_json(*facts)


@memory.command("import", short_help="Import the facts of a file that `export` wrote.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@_shared
def import_facts(file: Path, database: str | None) -> None:
    """Import the facts of a file that `export` wrote, with their dates, into this workspace's memory and yours.

    Lines of MEMORY.md and of the daily notes are left out: these are files to copy.
    """
    try:
        facts = msgspec.json.decode(b"[" + b",".join(file.read_bytes().splitlines()) + b"]", type=list[Fact])
    except OSError as error:
        raise click.BadParameter(f"{file} can't be read: {error.strerror}.") from error
    except msgspec.DecodeError as wrong:
        raise click.BadParameter(f"{file} isn't a file that `denizen memory export` wrote: {wrong}") from wrong
    click.echo(f"{_memory(database).keep(reversed(facts))} of {counted(len(facts), 'fact')} are new.", err=True)


def _memory(database: str | None) -> LongTermMemory:
    loaded = load()
    redactor = Redactor.from_environ(loaded.environ, loaded.secrets)
    opened = open_memory(
        loaded.config,
        clock=SystemClock(),
        redact=redactor.text,
        with_notes=True,
        database=PostgresDatabase(database) if database else None,
    )
    click.get_current_context().call_on_close(opened.close)
    return opened


def _of(facts: Iterable[Fact], only: str | None) -> list[Fact]:
    """Those of the project (`p`), or of the user (`u`) and the notes."""
    return [fact for fact in facts if only in {None, fact.id[:1] or "u"}]


def _print(facts: list[Fact], *, none: str, as_json: bool) -> None:
    if as_json:
        write_json(*facts)
    elif facts:
        rows = [
            (
                fact.id or "note",
                f"{fact.at.astimezone():%Y-%m-%d}" if fact.at else "",
                f"{fact.weight:g}" if fact.id else "",
                fact.context,
                fact.marked,
            )
            for fact in facts
        ]
        print_table(("id", "when", "weight", "about", "fact"), rows, elastic="fact", right=("weight",))
    else:
        click.echo(f"Nothing is remembered {none}.", err=True)
