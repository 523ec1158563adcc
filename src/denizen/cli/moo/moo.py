"""`denizen moo`: characters of a text world."""

import click

from denizen.cli.moo.check import check
from denizen.cli.moo.group import group
from denizen.cli.moo.init import init
from denizen.cli.moo.run import run


@click.group()
def moo() -> None:
    """Characters of a text world: create, check and run them."""


for _command in (run, init, check, group):
    moo.add_command(_command)
