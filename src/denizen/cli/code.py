"""`denizen code`: one task in a project, which can be checked, explained, committed and taken back."""

import asyncio
from pathlib import Path
from typing import Any

import click

from denizen.cli.coding import Wanted, do, list_here
from denizen.cli.options import TurnOptions, turn_options
from denizen.cli.turns import run, settled

_EXAMPLES = """\b
denizen code "Why does the import fail on Windows?"
denizen code --role refactorer --commit "Split the parser from the printer"
denizen code --role auditor --diff main --sarif audit.sarif "Review this change"
denizen code --continue "Now the tests"
"""


@click.command(epilog=_EXAMPLES)
@click.argument("task", nargs=-1)
@click.option("--role", default="", metavar="NAME", help="investigator, auditor or refactorer.")
@click.option("--diff", "base", default="", metavar="BASE", help="Give the difference to this commit with the task.")
@click.option("--validate", "checks", multiple=True, metavar="CMD", help="Must pass; `auto`: what the project has.")
@click.option("--tries", type=click.IntRange(1), default=3, show_default=True, help="How often that may fail.")
@click.option("--rollback", is_flag=True, help="When the task fails, make the files what they were.")
@click.option("--shadow", is_flag=True, help="Work in a copy; apply the changes only if they pass.")
@click.option("--commit", "commits", is_flag=True, help="Commit the changes, with a message that says what and why.")
@click.option("--explain", is_flag=True, help="Have the answer end with what was done, step by step.")
@click.option("--sarif", type=click.Path(dir_okay=False, path_type=Path), help="Write an auditor's findings there.")
@click.option("--list-sessions", is_flag=True, help="List the sessions of this workspace, and do nothing else.")
@turn_options(profile="coder")
def code(task: tuple[str, ...], list_sessions: bool, options: TurnOptions, **wanted: Any) -> int:
    """Do one task in this project: look, change, check.

    The agent sees the task, what it kept and what its last commands gave, and nothing else. A checkpoint is kept
    around everything that could change files: `denizen checkpoints`, and /undo in a chat, take it back. Without a task,
    --continue or --session goes on with one that was left unfinished.
    """
    with options.host() as host, asyncio.Runner() as runner:
        loaded = settled(options)
        if list_sessions:
            return run(runner, list_here(options, loaded))
        return run(runner, do(Wanted(words=" ".join(task), **wanted), options, loaded, host))
