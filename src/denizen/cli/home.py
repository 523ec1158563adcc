"""Where commands find the home, its sessions and their short names, and the folder to work in."""

import os
from pathlib import Path

import click

from denizen.config.home import find_home
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore, SessionKey

KEY_BEFORE_NAME = str(SessionKey("-")).removesuffix("-")
"""What comes before the name in the key of a session that began at the terminal."""

workspace_option = click.option(
    "--workspace",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder to work in. Otherwise: this git repository, else the agent's own folder.",
)


def home() -> Path:
    """The home: `$DENIZEN_HOME`, or `~/.denizen`."""
    return find_home(os.environ, Path.cwd())


def store() -> JsonlStore:
    """The sessions of the home."""
    return JsonlStore(home() / "sessions", clock=SystemClock())


def is_ours(key: str) -> bool:
    """Whether a session belongs to the terminal."""
    return SessionKey.parse(key).channel == SessionKey("any").channel
