"""`denizen trust`: which folders may bring their own settings and skills."""

from pathlib import Path

import click

from denizen.cli.home import home
from denizen.cli.text import printable
from denizen.config.trust import trust


@click.command("trust")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@click.option("--no", "refused", is_flag=True, help="Don't trust it, and don't ask about it.")
def trust_folder(folder: Path, refused: bool) -> None:
    """Let a folder bring its own denizen.toml and skills.

    They can change what the agent may do, or run; so they are read only in folders that you trust. A denizen.toml that
    changes later is asked about again.
    """
    trust(home(), folder, trusted=not refused)
    click.echo(f"{printable(str(folder.resolve()))} is {'not ' if refused else ''}trusted.", err=True)
