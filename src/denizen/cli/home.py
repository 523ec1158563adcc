"""Where commands find the home, its sessions and their short names, and the folder to work in."""

import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from denizen.config.home import find_home
from denizen.errors import ConfigError
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore, SessionKey

if TYPE_CHECKING:
    from denizen.sessions.tables import SharedTables

KEY_BEFORE_NAME = str(SessionKey("-")).removesuffix("-")
"""What comes before the name in the key of a session that began at the terminal."""

workspace_option = click.option(
    "--workspace",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder to work in (default: this git repository, else the agent's own folder).",
)


def home() -> Path:
    """The home: `$DENIZEN_HOME`, or `~/.denizen`."""
    return find_home(os.environ, Path.cwd())


def store() -> JsonlStore:
    """The sessions of the home."""
    return JsonlStore(home() / "sessions", clock=SystemClock())


@functools.cache
def shared_tables() -> "SharedTables | None":
    """The tables of the database that a setting such as `gateway.database` names; None: there is none."""
    from denizen.config.load import load
    from denizen.sessions.tables import SharedTables
    from denizen.worlds.world import worlds

    try:
        config = load().config
        url = next(filter(None, (world.database(config) for world in worlds())), "")
    except ConfigError as error:
        click.secho(f"Only sessions in files are shown: {error}", fg="yellow", err=True)
        return None
    if not url:
        return None
    tables = SharedTables(url)
    click.get_current_context().call_on_close(tables.close)
    return tables


def is_ours(key: str) -> bool:
    """Whether a session belongs to the terminal."""
    return SessionKey.parse(key).channel == SessionKey("any").channel
