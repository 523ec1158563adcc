"""`denizen code`: one task in a project, which can be checked, explained, committed and taken back."""

import asyncio
from pathlib import Path
from typing import Any

import click

from denizen.cli.coding import Wanted, do, list_here
from denizen.cli.options import TurnOptions, turn_options
from denizen.cli.turns import decide_folder, run

_EXAMPLES = """\b
Examples:
  denizen code "Why does the import fail on Windows?"
  denizen code --validate auto --commit "test_parse_dates fails. Fix it."
  denizen code --role auditor --diff main --sarif audit.sarif "Review this change"
  denizen code --continue "Now the tests"
"""


@click.command(epilog=_EXAMPLES)
@click.argument("task", nargs=-1)
@click.option("--role", default="", metavar="NAME", help="investigator, auditor or refactorer.")
@click.option("--diff", "base", default="", metavar="BASE", help="Show it what changed since this commit.")
@click.option(
    "--validate", "checks", multiple=True, metavar="CMD", help="A check that must pass; `auto`: the project's own."
)
@click.option(
    "--tries", type=click.IntRange(1), metavar="N", default=3, show_default=True, help="How often checks may fail."
)
@click.option("--rollback", is_flag=True, help="When the task fails, make the files what they were.")
@click.option("--shadow", is_flag=True, help="Work in a copy; apply the changes only if they pass.")
@click.option("--commit", "commits", is_flag=True, help="Commit what it changed, and nothing else.")
@click.option("--explain", is_flag=True, help="End the answer with the steps taken.")
@click.option("--sarif", type=click.Path(dir_okay=False, path_type=Path), help="Write an auditor's findings there.")
@click.option("--list-sessions", is_flag=True, help="List this workspace's sessions, no more.")
@turn_options(profile="coder")
def code(task: tuple[str, ...], list_sessions: bool, options: TurnOptions, **wanted: Any) -> int:
    """Do one task in this project: look, change, check.

    The agent sees the task, what it kept and what its last commands gave, and nothing else. A checkpoint is kept
    around everything that could change files: `denizen checkpoints`, and /undo in a chat, take it back. Without a task,
    --continue or --session goes on with one that was left unfinished, or stopped in its copy (--shadow).
    """
    with options.host() as host, asyncio.Runner() as runner:
        loaded = decide_folder(options)
        if list_sessions:
            return run(runner, list_here(options, loaded))
        return run(runner, do(Wanted(words=" ".join(task), **wanted), options, loaded, host))
