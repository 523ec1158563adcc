"""`denizen moo init`: the directory of a new agent."""

from pathlib import Path

import click

from denizen.cli.output import write
from denizen.config.files import write_private
from denizen.config.home import private_folder
from denizen.config.toml import to_toml
from denizen.errors import ConfigError
from denizen.worlds.moo.folder import SETTINGS, SOUL

_SOUL = """\
# Name
{name}

# Mission
Explore the world, and make it a place worth visiting: new rooms, described and furnished.

# Persona
Curious and patient. Speaks little, and kindly.

## Context
What it should know. Links to .md and .txt files here are read in their place.

## Rules of Engagement
What it answers without thinking, a line each: `regular expression` -> command
- `^You feel hungry` -> look

## Verb Mapping
What it means by a word of its own, a line each: intent -> command
- look around -> look
"""
_SETTINGS = """\
{model}[moo]
host = {host}
port = {port}
user = {user}
# The password is MOO_PASSWORD in the environment, or in .env in Denizen's home.
#password_env = "MOO_{variable}_PASSWORD"
#idle_wakeup_seconds = 60.0    # 0: only pages wake it
#memory_window_lines = 60      # what it sees of the world
"""
_IGNORED = "logs/\nbuilds/\n"


@click.command(short_help="Create the directory of a new agent.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
@click.option("--name", default="", help="The agent's name (default: the directory's).")
@click.option("--host", default="localhost", show_default=True, help="The server.")
@click.option("--port", default=8022, show_default=True, type=click.IntRange(1, 65535), help="Its port.")
@click.option("--user", default="", help="The player to sign in as (default: the name).")
@click.option("--model", default="", metavar="PROVIDER:MODEL", help="Its model (default: the home's).")
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def init(folder: Path, *, name: str, host: str, port: int, user: str, model: str, force: bool) -> None:
    """Create the directory of a new agent: who it is (SOUL.md), and where it plays (denizen.toml)."""
    name = name or folder.resolve().name
    user = user or name.lower()
    variable = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in user.upper())
    settings = _SETTINGS.format(
        model=f"model = {to_toml(model)}\n\n" if model else "",
        host=to_toml(host),
        port=port,
        user=to_toml(user),
        variable=variable,
    )
    files = {SOUL: _SOUL.format(name=name), SETTINGS: settings, ".gitignore": _IGNORED}
    there = [each for each in files if (folder / each).exists()]
    if there and not force:
        raise ConfigError(f"{folder} has {', '.join(there)} already. To overwrite: --force")
    private_folder(folder)
    for each, text in files.items():
        write_private(folder / each, text.encode())
    write(f"{folder}: edit {SOUL}, set MOO_PASSWORD, then: denizen moo run {folder}\n")
