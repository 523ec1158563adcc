"""`denizen context`: what the model would be asked next."""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
import msgspec

from denizen.cli.home import store
from denizen.cli.output import write
from denizen.cli.table import print_table
from denizen.cli.text import printable
from denizen.cli.turns import last_prompt
from denizen.config.load import load
from denizen.engine import Agent
from denizen.engine.context import Part, next_request, parts_of
from denizen.engine.resume import question_of
from denizen.entries import AnyEntry, SessionEntry

TITLES = ("message", "from", "part", "characters", "tokens", "begins with")


@click.command()
@click.argument("session")
@click.option("--full", is_flag=True, help="The whole texts.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line for each part, with its text.")
@click.option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Read this file instead.")
def context(session: str, full: bool, as_json: bool, config: Path | None) -> None:
    """What the next model call of SESSION would contain, part by part, with sizes.

    Nothing is asked and nothing is changed; the session may be in use. Tokens are an estimate.
    """
    entries = asyncio.run(store().read(session))
    parts = asyncio.run(_parts(entries, config))
    if as_json:
        write("".join(msgspec.json.encode(part).decode() + "\n" for part in parts))
    elif full:
        for part in parts:
            write(click.style(_heading(part), bold=True) + f"\n{printable(part.text).strip()}\n\n")
    else:
        print_table(TITLES, _rows(parts), elastic="begins with", right=("characters", "tokens"))
    if question := question_of(entries):
        click.secho(printable(f"It waits for an answer first: {question.question}"), fg="yellow", err=True)


async def _parts(entries: Sequence[AnyEntry], config: Path | None) -> list[Part]:
    header = next((entry for entry in entries if isinstance(entry, SessionEntry)), SessionEntry(key=""))  # may be lost
    loaded = load(config, workspace=header.workspace if Path(header.workspace).is_dir() else None)
    async with Agent(loaded.config, environ=loaded.environ, profile=header.profile or "assistant") as agent:
        prompt = last_prompt(entries)
        return [*parts_of(next_request(agent, entries), prompt.text if prompt else "")]


def _rows(parts: Sequence[Part]) -> Iterable[Sequence[str]]:
    for part in parts:
        yield (*_cells(part), part.text.strip()[:200])
    yield "", "", "total", f"{sum(part.characters for part in parts):,}", f"{sum(part.tokens for part in parts):,}", ""


def _heading(part: Part) -> str:
    message = f"message {part.message} · " if part.message else ""
    return f"# {message}{part.role} · {part.kind} · {part.characters:,} characters · about {part.tokens:,} tokens"


def _cells(part: Part) -> Sequence[str]:
    return str(part.message or ""), part.role, part.kind, f"{part.characters:,}", f"{part.tokens:,}"
