"""`denizen moo`: characters of a text world."""

import click

from denizen.cli.moo.init import init


@click.group()
def moo() -> None:
    """Characters of a text world: make one, check it, let it play."""


moo.add_command(init)
