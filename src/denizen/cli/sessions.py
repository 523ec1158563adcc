"""`denizen sessions`: list, show, fork, remove or export them."""

import asyncio
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Literal

import click
import msgspec

from denizen.cli.home import home, shared_tables, store
from denizen.cli.output import ask_to_delete, is_interactive, print_table, write, write_file, write_json, write_markdown
from denizen.cli.text import cut, printable, shorten, width
from denizen.config.home import user_folder
from denizen.config.load import load
from denizen.entries import (
    AnswerEntry,
    AnyEntry,
    AssistantEntry,
    CompactionEntry,
    EndEntry,
    ParkedEntry,
    SessionEntry,
    SystemEntry,
    ToolEntry,
    UserEntry,
)
from denizen.errors import DenizenError
from denizen.messages import AssistantMessage, AssistantPart, Document, Text, Thinking, ToolCall, UserPart
from denizen.ports import SessionInfo
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore, new_name, short_name
from denizen.sessions.index import page_of
from denizen.sessions.postgres import PostgresStore
from denizen.sessions.retention import prune as apply_retention
from denizen.sessions.search_file import SearchFile
from denizen.sessions.search_index import SearchIndex
from denizen.sessions.search_table import SearchTable
from denizen.sessions.spend import Sums
from denizen.sessions.spend_file import SpendFile
from denizen.sessions.spend_table import SpendTable
from denizen.text.plural import counted, usage_parts

MAX_FOLDER_CELLS = 28
"""Cells of a folder on a terminal."""
_TERMINAL_LIMIT = 50
_ALL_SESSIONS = 2**31 - 1


@click.group()
def sessions() -> None:
    """The saved sessions: in the home, and in the database that gateway.database names.

    A session is named by --session, or else after the time when it began; sessions of other channels go by their keys.
    """


@sessions.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with every detail.")
@click.option("--limit", type=click.IntRange(1), help="Sessions at most. [default: 50 on a terminal, otherwise all]")
@click.option("--before", metavar="TIME", help="Those last used before a date, or a time as the last page shows it.")
def list_sessions(as_json: bool, limit: int | None, before: str | None) -> None:
    """List sessions, the latest first."""
    usual = _TERMINAL_LIMIT if is_interactive() and not as_json else _ALL_SESSIONS
    limit = min(limit or usual, _ALL_SESSIONS)
    until = math.inf
    if before:
        try:
            until = datetime.fromisoformat(before).timestamp()
        except ValueError:
            raise click.BadParameter(
                f"{before!r} isn't a date or a time such as 2026-01-31T12:00.", param_hint="--before"
            ) from None
    found = page_of([info for each, _ in _places() for info in asyncio.run(each.page(limit, until))], limit)
    print_sessions(found, as_json=as_json)
    if len(found) >= limit and not as_json:
        more = datetime.fromtimestamp(found[-1].used).astimezone().isoformat()
        click.echo(f"There may be more: denizen sessions list --limit {limit} --before {more}", err=True)


@sessions.command(short_help="Find sessions by what was said in them.")
@click.argument("words", nargs=-1, required=True, metavar="WORDS…")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with every detail.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="Sessions at most.")
def search(words: tuple[str, ...], as_json: bool, limit: int) -> None:
    """Find the sessions in which all the WORDS were said in one message, the latest first.

    Words match by their beginnings, in any case. The first search reads all transcripts, which may take a while.
    """
    said, tables = " ".join(words), shared_tables()
    indexes: list[SearchIndex] = [SearchFile(home() / "sessions", home() / "search.db")]
    indexes += [SearchTable(tables)] if tables else []
    found = [session for index in indexes for session in index.find(said, limit)]
    found = sorted(found, key=lambda each: each.at, reverse=True)[:limit]
    if as_json:
        write_json(*found)
    elif found:
        rows = [(short_name(each.session_key), _when(each.at), str(each.hits), printable(each.text)) for each in found]
        print_table(("name", "when", "hits", "text"), rows, elastic="text", right=("hits",), spare=("hits",))
    else:
        click.echo("No session has these words.", err=True)


def _places() -> Sequence[tuple[JsonlStore | PostgresStore, Sums]]:
    """The sessions and sums of spending in the home and, if there is one, in the database of its gateway."""
    files, tables = (store(), SpendFile(home() / "spend.db")), shared_tables()
    return [files, (PostgresStore(tables, clock=SystemClock()), SpendTable(tables))] if tables else [files]


def _store_of(name: str) -> JsonlStore | PostgresStore:
    """The store that has the session; the database if neither has it."""
    if store().path(name).exists():
        return store()
    *_, (last, _) = _places()
    return last


def print_sessions(found: Sequence[SessionInfo], *, as_json: bool = False) -> None:
    """Sessions, as a table or as lines of JSON, with what all turns of each have cost."""
    spent: dict[str, float] = {}
    for _, sums in _places():
        with suppress(DenizenError):  # then it is what the last turn has cost
            spent |= sums.read([info.key for info in found])
    found = [msgspec.structs.replace(info, cost_usd=max(info.cost_usd, spent.get(info.key, 0.0))) for info in found]
    if as_json:
        write_json(*found)
    elif found:
        rows: list[Sequence[str]] = []
        for info in found:
            name, half = short_name(info.key), max(shutil.get_terminal_size().columns // 8, 10)
            if width(name) > 2 * half and sys.stdout.isatty():  # it would leave no room for the rest
                name = f"{cut(name, half)}{name[-half:]}"
            tokens = f"{info.tokens:,}" if info.tokens else ""
            cost = f"${info.cost_usd:.4f}" if info.cost_usd else ""
            ended = info.stop_reason.replace("_", " ")
            rows.append(
                (name, _when(info.updated), info.model, tokens, cost, ended, _folder(info.workspace), info.title)
            )
            rows += [(f"  --at {talk.head}", "", "", "", "", "", "", talk.title) for talk in info.earlier]
        print_table(
            ("name", "when", "model", "tokens", "cost", "ended", "folder", "title"),
            rows,
            elastic="title",
            right=("tokens", "cost"),
            spare=("tokens", "model", "cost"),
        )
    else:
        click.echo("There are no sessions yet.", err=True)


@sessions.command()
@click.argument("name")
@click.option("--all", "whole", is_flag=True, help="Include long results, and the model's thinking.")
def show(name: str, whole: bool) -> None:
    """Show a session, for reading; long results are shortened."""
    for paragraph in _paragraphs(_read(name), whole=whole):
        write_markdown(printable(paragraph))
        write("\n")


@sessions.command()
@click.argument("name")
@click.argument("to", required=False)
@click.option("--at", default="", metavar="ENTRY", help="Copy only up to this entry (`export` shows the ids).")
def fork(name: str, to: str | None, at: str) -> None:
    """Copy a session into a new one, and print its name."""
    to = to or new_name(SystemClock())
    asyncio.run(_store_of(name).fork(name, to, at=at))
    write(f"{to}\n")


@sessions.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@click.option("--yes", is_flag=True, help="Don't ask.")
def rm(names: tuple[str, ...], yes: bool) -> None:
    """Delete sessions permanently."""
    ask_to_delete(f"Delete {', '.join(names)} permanently?", yes=yes)
    for name in names:
        asyncio.run(_store_of(name).remove(name))
    SearchFile(home() / "sessions", home() / "search.db").purge_removed()


@sessions.command()
def prune() -> None:
    """Delete now what `[retention]` in denizen.toml no longer keeps.

    By default these are sessions in which nothing was said for 30 days. The gateway does the same once a day.
    """
    config, clock = load().config, SystemClock()
    for each, sums in _places():
        pruned = asyncio.run(apply_retention(each, sums, config.retention, clock))
        where = "in the database" if sums.is_remote else "in the home"
        click.echo(
            f"Deleted {counted(pruned.sessions, 'session')} and {counted(pruned.sums, 'sum')} {where}.", err=True
        )


@sessions.command()
@click.argument("name")
@click.option("--format", "kind", type=click.Choice(["jsonl", "markdown"]), default="jsonl", show_default=True)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file, readable by you alone."
)
def export(name: str, kind: Literal["jsonl", "markdown"], output: Path | None) -> None:
    """Print a whole session: its entries as JSON lines, or Markdown."""
    if kind == "jsonl":
        text = "".join(msgspec.json.encode(entry).decode() + "\n" for entry in _read(name))
    else:
        text = "\n\n".join(_paragraphs(_read(name), whole=True)) + "\n"
    if output:
        write_file(output, text.encode())
    else:
        write(text if kind == "jsonl" else printable(text))


def _read(name: str) -> Sequence[AnyEntry]:
    return asyncio.run(_store_of(name).read(name))


def _when(at: float) -> str:
    """A time of today, or the date."""
    then = datetime.fromtimestamp(at).astimezone()
    return f"{then:%H:%M}" if then.date() == datetime.now().astimezone().date() else f"{then:%Y-%m-%d}"


def _folder(path: str) -> str:
    """A folder as a person writes it; on a terminal the end of a long one."""
    own = f"{user_folder(os.environ)}/"
    path = f"~/{path[len(own) :]}" if path.startswith(own) else path
    if not sys.stdout.isatty():
        return path
    parts = path.split("/")
    while width("/".join(parts)) > MAX_FOLDER_CELLS and len(parts) > 2:
        parts[:2] = ["…"]
    return "/".join(parts)


def _paragraphs(entries: Sequence[AnyEntry], *, whole: bool) -> Iterator[str]:
    """Paragraphs of Markdown for everything that was said or done; long results are shortened unless `whole`."""
    answers: list[AssistantMessage] = []  # of the turn
    for entry in entries:
        match entry:
            case SessionEntry():
                yield f"# {short_name(entry.key)}\n\n{entry.at:%Y-%m-%d %H:%M} · {entry.workspace}"
            case UserEntry(message=message):
                yield f"## User\n\n{_text(message.content)}"
            case AssistantEntry(message=message):
                answers.append(message)
                yield f"## Agent{f' ({message.model})' if message.model else ''}"
                yield from _parts(message.content, whole=whole)
            case ToolEntry(message=result):
                yield f"{'error' if result.is_error else 'result'}:\n{_fenced(_text(result.content), whole=whole)}"
            case CompactionEntry():
                yield f"*Context made smaller.*\n\n{entry.summary}"
            case SystemEntry(text=text):
                yield f"*System:* {text}"
            case ParkedEntry(question=question):
                yield f"*Parked:* {question}"
            case AnswerEntry():
                yield f"*Answer:* {'yes' if entry.allow else 'no'} {entry.text}".rstrip()
            case EndEntry():
                ended = [entry.stop_reason.replace("_", " "), *usage_parts(entry.usage, answers), entry.error]
                answers = []
                yield f"*{' · '.join(filter(None, ended))}*"


def _parts(parts: Sequence[AssistantPart], *, whole: bool) -> Iterator[str]:
    for part in parts:
        match part:
            case Text(text=text) if text.strip():
                yield text.strip()
            case Thinking(text=text) if whole and text.strip():
                yield "\n".join(f"> {line}" for line in text.strip().split("\n"))
            case ToolCall(name=name, args=args):
                values = {
                    key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                    for key, value in args.items()
                }
                lines = "\n".join(f"{key}: {value}" for key, value in values.items())
                yield f"**{name}**\n{_fenced(lines, whole=whole)}"


def _text(parts: Sequence[UserPart]) -> str:
    return "\n\n".join(map(_part_text, parts))


def _part_text(part: UserPart) -> str:
    if isinstance(part, Text):
        return part.text
    name = f"{part.name}, " if isinstance(part, Document) else ""
    return f"[{name}{part.media_type}, {len(part.data):,} bytes]"


def _fenced(text: str, *, whole: bool) -> str:
    """The text between fences that are longer than any in it."""
    if not whole:
        text = shorten(text, lines=12, characters=1_000, how="--all shows them")
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"
