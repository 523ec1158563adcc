"""`denizen config`, `denizen trust`, `denizen completion`: what is set up once."""

import os
from pathlib import Path

import click

from denizen.cli.home import home, workspace_option
from denizen.cli.output import accept_change, write, write_file
from denizen.cli.text import printable
from denizen.config.files import write_private
from denizen.config.home import expand, private_folder, sole_writer
from denizen.config.load import load
from denizen.config.reference import starter_file
from denizen.config.trust import trust
from denizen.errors import ConfigError
from denizen.trusted.session_files import SessionFiles
from denizen.worlds.assemble import Agent


@click.group()
def config() -> None:
    """The settings: denizen.toml in the home ($DENIZEN_HOME, else ~/.denizen)."""


@config.command()
def path() -> None:
    """Print the path of denizen.toml, even if it doesn't exist."""
    write(f"{home() / 'denizen.toml'}\n")


@config.command(short_help="Write denizen.toml, with every setting in it.")
def init() -> None:
    """Write denizen.toml: every setting with its meaning and its default, commented out."""
    file = home() / "denizen.toml"
    with sole_writer(home()):
        if file.exists():
            raise ConfigError(f"{file} exists already. Edit it; `denizen config check` says what is wrong in it.")
        write_private(file, starter_file().encode())
    write(f"{file}\n")


@config.command(short_help="Check the settings.")
@click.option("--config", "file", type=click.Path(path_type=Path), help="Check this file in place of the home's.")
@workspace_option
def check(file: Path | None, workspace: Path | None) -> None:
    """Read the settings as a turn would, and show the result, or what is wrong.

    The exit status is 2 if something is wrong.
    """
    from denizen.cli.models import why_in_use

    loaded = load(file, workspace=workspace)
    agent = Agent(loaded.config, environ=loaded.environ)
    missing = [f"nothing: {home() / 'denizen.toml'} doesn't exist, so the defaults apply"]
    found = {
        "read": loaded.sources or missing,
        "model": [f"{agent.model.name} ({why_in_use(loaded, agent.model.name)})"],
        "then": loaded.config.fallback_models,
        "workspace": [agent.workspace],
    }
    write("".join(f"{what:11}{printable(str(each))}\n" for what, values in found.items() for each in values))
    for text in loaded.notices:
        click.secho(printable(text), fg="yellow", err=True)


@click.command("trust")
@click.argument("place", type=click.Path(path_type=Path), metavar="DIR|FILE")
@click.option("--no", "refused", is_flag=True, help="Don't trust the folder, and don't ask about it.")
@click.option("--yes", is_flag=True, help="Accept the file without a question.")
def trust_place(place: Path, refused: bool, yes: bool) -> None:
    """Let a folder bring its own denizen.toml and skills; or accept what a command changed in a file.

    Settings and skills can change what the agent may do, or run; so they are read only in folders that you trust. If
    its denizen.toml changes later, you are asked again.

    A change that a command made to AGENTS.md, MEMORY.md and the like takes effect once you accept it; you see it first.
    """
    if place.is_dir():
        trust(home(), place, trusted=not refused)
        click.echo(f"{printable(str(place.resolve()))} is {'not ' if refused else ''}trusted.", err=True)
        return
    files, path = SessionFiles(home()), place.parent.resolve() / place.name
    if refused or not (difference := files.difference(path)):
        raise click.UsageError(f"{place} isn't a folder, nor a file with a change to accept.")
    accept_change(f"Accept {path} as it is now?", difference, yes=yes)
    files.accept(path)
    click.echo(f"{printable(str(path))} is accepted as it is now.", err=True)


_SHELLS = {
    "bash": (
        "~/.local/share/bash-completion/completions/denizen",
        "It works in the next shell, where the package bash-completion is installed.",
    ),
    "fish": ("~/.config/fish/completions/denizen.fish", "It works in the next shell."),
    "zsh": (
        "~/.zfunc/_denizen",
        "For the next shell, ~/.zshrc needs these lines:\n  fpath+=~/.zfunc\n  autoload -Uz compinit && compinit",
    ),
}
"""Where each shell looks for completions, and what to do then."""


@click.command()
@click.argument("shell", type=click.Choice([*_SHELLS]), required=False)
@click.option("--print", "prints", is_flag=True, help="Print the script instead of installing it.")
def completion(shell: str | None, prints: bool) -> None:
    """Install Tab completion for bash, fish or zsh (default: the shell in $SHELL).

    Writes a file where the shell looks for completions, and prints its path.
    """
    from click.shell_completion import get_completion_class

    from denizen.cli.main import cli

    shell = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(shell)
    if kind is None or shell not in _SHELLS:
        raise click.UsageError(f"Which shell? Name one: {', '.join(_SHELLS)}.")
    script = kind(cli, {}, "denizen", "_DENIZEN_COMPLETE").source()
    if prints:
        write(script)
        return
    place, what_next = _SHELLS[shell]
    file = expand(place, os.environ)
    private_folder(file.parent)
    write_file(file, script.encode())
    write(f"{file}\n")
    click.echo(what_next, err=True)
