"""`denizen config`: the file of settings."""

from pathlib import Path

import click

from denizen.cli.chosen import chosen_by
from denizen.cli.home import home
from denizen.cli.output import write
from denizen.cli.text import printable
from denizen.config.files import write_private
from denizen.config.home import sole_writer
from denizen.config.load import load
from denizen.config.reference import starter_file
from denizen.engine import Agent
from denizen.errors import ConfigError


@click.group()
def config() -> None:
    """The settings: denizen.toml in the home ($DENIZEN_HOME, else ~/.denizen)."""


@config.command()
def path() -> None:
    """Where the settings are, whether the file exists or not."""
    write(f"{home() / 'denizen.toml'}\n")


@config.command(short_help="Make denizen.toml, with every setting in it.")
def init() -> None:
    """Make denizen.toml: every setting with its meaning and its default, commented out."""
    file = home() / "denizen.toml"
    with sole_writer(home()):
        if file.exists():
            raise ConfigError(f"{file} exists already. Edit it; `denizen config check` tells what is wrong in it.")
        write_private(file, starter_file().encode())
    write(f"{file}\n")


@config.command(short_help="Read the settings, and say what is wrong.")
@click.option("--config", "file", type=click.Path(path_type=Path), help="Check this file in place of the home's.")
@click.option("--workspace", type=click.Path(exists=True, file_okay=False, path_type=Path), help="As seen from here.")
def check(file: Path | None, workspace: Path | None) -> None:
    """Read the settings as a turn would, and say what comes of them, or what is wrong.

    The exit status is 2 where something is.
    """
    loaded = load(file, workspace=workspace)
    agent = Agent(loaded.config, environ=loaded.environ)
    _say("read", *map(str, loaded.sources or [f"nothing: {home() / 'denizen.toml'} isn't there, the defaults hold"]))
    _say("model", f"{agent.model.name} ({chosen_by(loaded, agent.model.name)})")
    _say("then", *loaded.config.fallback_models)
    _say("workspace", str(agent.workspace))
    for text in loaded.notices:
        click.secho(printable(text), fg="yellow", err=True)


def _say(what: str, *found: str) -> None:
    """A line for each thing that was found."""
    write("".join(f"{what:11}{printable(each)}\n" for each in found))
