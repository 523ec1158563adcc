"""`denizen context`: what the next model call of a session would contain."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click

from denizen.cli.home import store
from denizen.cli.output import print_table, write, write_json
from denizen.cli.text import printable
from denizen.config.load import load
from denizen.engine.next_request import RequestPart, last_prompt, next_request, parts_of
from denizen.engine.resume import question_of
from denizen.entries import AnyEntry, header_of
from denizen.worlds.assemble import Agent


@click.command()
@click.argument("session")
@click.option("--full", is_flag=True, help="Print the whole texts.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line for each part, with its text.")
@click.option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Read this file instead.")
def context(session: str, full: bool, as_json: bool, config: Path | None) -> None:
    """Show what the next model call of SESSION would contain, part by part, with sizes.

    No model is called and nothing changes; the session may be in use. Token counts are estimates.
    """
    entries = asyncio.run(store().read(session))
    parts = asyncio.run(_parts(entries, config))
    if as_json:
        write_json(*parts)
    elif full:
        for part in parts:
            message = f"message {part.message} · " if part.message else ""
            size = f"{part.characters:,} characters · about {part.tokens:,} tokens"
            heading = click.style(f"# {message}{part.role} · {part.kind} · {size}", bold=True)
            write(f"{heading}\n{printable(part.text).strip()}\n\n")
    else:
        rows = [
            (str(each.message or ""), each.role, each.kind, f"{each.characters:,}", f"{each.tokens:,}", each.text[:200])
            for each in parts
        ]
        characters, tokens = sum(each.characters for each in parts), sum(each.tokens for each in parts)
        print_table(
            ("message", "from", "part", "characters", "tokens", "begins with"),
            [*rows, ("", "", "total", f"{characters:,}", f"{tokens:,}", "")],
            elastic="begins with",
            right=("characters", "tokens"),
        )
    if question := question_of(entries):
        click.secho(printable(f"The session waits for an answer first: {question.question}"), fg="yellow", err=True)


async def _parts(entries: Sequence[AnyEntry], config: Path | None) -> list[RequestPart]:
    header = header_of(entries)
    loaded = load(config, workspace=header.workspace if Path(header.workspace).is_dir() else None)
    async with Agent(loaded.config, environ=loaded.environ, profile=header.profile or "assistant") as agent:
        prompt = last_prompt(entries)
        return [*parts_of(next_request(agent.record, entries), prompt.text if prompt else "")]
