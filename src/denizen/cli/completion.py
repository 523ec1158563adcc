"""`denizen completion`: what Tab completes in a shell."""

import os
from pathlib import Path

import click

from denizen.cli.output import write, write_file
from denizen.config.home import expand, private_folder

_FILES = {
    "bash": "~/.local/share/bash-completion/completions/denizen",
    "fish": "~/.config/fish/completions/denizen.fish",
    "zsh": "~/.zfunc/_denizen",
}
_NEXT = {
    "bash": "It works in the next shell, where the package bash-completion is installed.",
    "fish": "It works in the next shell.",
    "zsh": "For the next shell, ~/.zshrc needs these lines:\n  fpath+=~/.zfunc\n  autoload -Uz compinit && compinit",
}


@click.command()
@click.argument("shell", type=click.Choice(list(_FILES)), required=False)
@click.option("--print", "prints", is_flag=True, help="Print the script, and install nothing.")
def completion(shell: str | None, prints: bool) -> None:
    """Let Tab complete commands and options in your shell: bash, fish or zsh; without a name, the one in $SHELL.

    Writes a file where the shell looks for it, and says where.
    """
    from click.shell_completion import get_completion_class

    from denizen.cli.main import cli

    shell = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(shell)
    if kind is None or shell not in _FILES:
        raise click.UsageError(f"Which shell? Name one: {', '.join(_FILES)}.")
    script = kind(cli, {}, "denizen", "_DENIZEN_COMPLETE").source()
    if prints:
        write(script)
        return
    file = expand(_FILES[shell], os.environ)
    private_folder(file.parent)
    write_file(file, script.encode())
    write(f"{file}\n")
    click.echo(_NEXT[shell], err=True)
