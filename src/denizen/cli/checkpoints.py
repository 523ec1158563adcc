"""`denizen checkpoints`: list, make, compare and restore snapshots of a workspace's files."""

import asyncio
import os
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from denizen.checkpoints import Conflict, Shadow, Snapshot, named, shadow_of
from denizen.cli.home import store, workspace_option
from denizen.cli.output import confirm, is_interactive, print_table, write, write_json
from denizen.cli.text import printable
from denizen.config.home import places
from denizen.config.load import load
from denizen.engine.undo import finish_undo, return_to
from denizen.errors import DenizenError
from denizen.runtime.clock import SystemClock
from denizen.sessions import session_key
from denizen.text.plural import counted

_ID = 10
"""Letters of an id that are shown."""

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def checkpoints() -> None:
    """Snapshots of a workspace's files: before and after the agent changes them, or made by hand.

    A checkpoint is named by its id, the beginning of its id, or its label (the newest one that has it). Files that git
    ignores are neither kept nor touched.
    """


@checkpoints.command("list", short_help="List the checkpoints, the latest first.")
@workspace_option
@click.option("--all", "everything", is_flag=True, help="All of them, not the latest 20.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with every detail.")
def list_checkpoints(workspace: Path | None, everything: bool, as_json: bool) -> None:
    """List the checkpoints, the latest first, and which files changed up to each."""
    shadow = _shadow(workspace)
    snapshots = asyncio.run(shadow.list())
    most = len(snapshots) if everything else 20
    pairs = [(old, new) for new, old in pairwise(snapshots[: most + 1])]
    changes = [*asyncio.run(shadow.changed(pairs)), ()]  # nothing comes before the first one
    found = list(zip(snapshots[:most], changes, strict=False))
    if as_json:
        write_json(*(_details(snapshot, changed) for snapshot, changed in found))
    elif found:
        today = datetime.now().astimezone().date()
        rows: list[Sequence[str]] = []
        for snapshot, changed in found:
            at = snapshot.at.astimezone()
            when = f"{at:%H:%M}" if at.date() == today else f"{at:%Y-%m-%d %H:%M}"
            about = f"[only {', '.join(snapshot.paths)}] " if snapshot.paths else ""
            rows.append((snapshot.id[:_ID], when, snapshot.label or snapshot.note, f"{about}{', '.join(changed)}"))
        print_table(("id", "when", "label", "changed"), rows, elastic="changed")
    else:
        click.echo("There are no checkpoints of this folder yet.", err=True)


@checkpoints.command(short_help="Save the files as they are now, under a label.")
@click.argument("label")
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@workspace_option
@_json
def create(label: str, paths: tuple[str, ...], workspace: Path | None, as_json: bool) -> None:
    """Save the files as they are now, under a label; print the checkpoint's id.

    With paths, restoring it touches only these.
    """
    shadow = _shadow(workspace)
    name = asyncio.run(shadow.snapshot(label, [Path.cwd() / path for path in paths]))
    made = asyncio.run(shadow.find(name))
    if made.left_out:
        click.echo(f"Left out, because they can't be saved: {printable(named(made.left_out))}.", err=True)
    if as_json:
        write_json(_details(made, ()))
    else:
        write(f"{made.id}\n")


@checkpoints.command(short_help="Show what changed since a checkpoint, or between two.")
@click.argument("checkpoint", required=False, default="")
@click.argument("other", required=False, default="")
@click.option("--names", is_flag=True, help="Only the paths that differ.")
@workspace_option
@_json
def diff(checkpoint: str, other: str, names: bool, workspace: Path | None, as_json: bool) -> None:
    """Show what changed from a checkpoint (the latest) to another, or to the files as they are."""
    shadow = _shadow(workspace)
    if not checkpoint:
        latest = next(iter(asyncio.run(shadow.list())), None)
        if latest is None:
            raise DenizenError("There are no checkpoints of this folder yet, so there is nothing to compare with.")
        checkpoint = latest.id
    found = asyncio.run(shadow.diff(checkpoint, other))
    if as_json:
        write_json({"paths": found.paths, "text": found.text})
        return
    write("".join(f"{printable(path)}\n" for path in found.paths) if names else printable(found.text))
    if not found.paths:
        click.echo("No difference.", err=True)


@checkpoints.command(short_help="Restore the files of a checkpoint.")
@click.argument("checkpoint")
@click.option("--force", is_flag=True, help="Overwrite changes made since the latest checkpoint, too.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--session", default="", metavar="NAME", help="Also return the session that made it to that point.")
@workspace_option
@_json
def restore(checkpoint: str, *, force: bool, yes: bool, session: str, workspace: Path | None, as_json: bool) -> None:
    """Restore the files of a checkpoint; print the id of a new one, of the files as they were until now.

    Files created since are removed, deleted ones restored; restoring the printed id undoes it. Changes that you made
    since the latest checkpoint aren't overwritten without --force. With --session the conversation returns together
    with the files; /redo in a chat takes both forward again.
    """
    shadow = _shadow(workspace)
    would = asyncio.run(shadow.preview(checkpoint))
    if would.since and not force:
        raise Conflict(would.since, "add --force")
    if would.paths and not yes and is_interactive():
        question = f"Change {counted(len(would.paths), 'file')} ({printable(named(would.paths))})?"
        confirm(question, abort=True)
    before = asyncio.run(_return_to(shadow, checkpoint, session) if session else shadow.restore(checkpoint))
    click.echo(f"{counted(len(would.paths), 'file')} restored.", err=True)
    if as_json:
        write_json({"before": before, "paths": would.paths})
    else:
        write(f"{before}\n")


def _shadow(workspace: Path | None) -> Shadow:
    home, folder = places(load(workspace=workspace).config)
    return shadow_of(folder, home, clock=SystemClock(), environ=os.environ)


async def _return_to(shadow: Shadow, checkpoint: str, name: str) -> str:
    """Take a session back to a checkpoint, files and all; returns the snapshot of what the files were until now."""
    sessions, key = store(), session_key(name)
    await sessions.read(key)  # which raises if there is none
    session = await sessions.open(key)
    try:
        await finish_undo(shadow, session)
        return await return_to(shadow, session, (await shadow.find(checkpoint)).id)
    finally:
        await session.close()


def _details(snapshot: Snapshot, changed: Sequence[str]) -> dict[str, Any]:
    names = ("id", "at", "label", "note", "paths", "left_out")
    return {name: getattr(snapshot, name) for name in names} | {"changed": changed}
