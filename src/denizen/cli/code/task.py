"""`denizen code`: one task in a project, which can be checked, explained, committed and taken back."""

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

from denizen import __version__
from denizen.cli.attachments import compose, read_piped, unattached
from denizen.cli.home import store
from denizen.cli.host import JsonHost
from denizen.cli.options import CommandOptions, command_options
from denizen.cli.output import write_file
from denizen.cli.sessions import print_sessions
from denizen.cli.terminal import Terminal
from denizen.cli.turns import STATUS, decide_folder, opened, run
from denizen.config.home import places
from denizen.config.load import Loaded
from denizen.errors import ConfigError
from denizen.events import Notice
from denizen.messages import Text, UserMessage
from denizen.worlds.assemble import Agent
from denizen.worlds.code.carry_out import STEPS_REQUEST, carry_out
from denizen.worlds.code.commit import REQUEST as COMMIT
from denizen.worlds.code.commit import check_committer, difference_to, repository_of
from denizen.worlds.code.roles import AUDITOR, Role, find_role, findings_of, sarif_of
from denizen.worlds.code.validators import validators_of
from denizen.worlds.code.work import CodeTask, TaskSpec, last_task_spec

AUTO = "auto"
"""The name of the project's own checks."""

_EXAMPLES = """\b
Examples:
  denizen code "Why does the import fail on Windows?"
  denizen code --validate auto --commit "test_parse_dates fails. Fix it."
  denizen code --role auditor --diff main --sarif audit.sarif "Review this change"
  denizen code --continue "Now the tests"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """What the command line said of the task."""

    role: str
    base: str
    checks: tuple[str, ...]
    tries: int
    rollback: bool
    shadow: bool
    commits: bool
    explain: bool
    sarif: Path | None


@click.command(epilog=_EXAMPLES)
@click.argument("task", nargs=-1)
@click.option("--role", default="", metavar="NAME", help="investigator, auditor or refactorer.")
@click.option("--diff", "base", default="", metavar="BASE", help="Add the changes since this commit to the task.")
@click.option(
    "--validate", "checks", multiple=True, metavar="CMD", help="A check that must pass; `auto`: the project's own."
)
@click.option(
    "--tries", type=click.IntRange(1), metavar="N", default=3, show_default=True, help="How often checks may fail."
)
@click.option("--rollback", is_flag=True, help="If the task fails, restore the files.")
@click.option("--shadow", is_flag=True, help="Work in a copy; apply the changes only if they pass.")
@click.option("--commit", "commits", is_flag=True, help="Commit what it changed, and nothing else.")
@click.option("--explain", is_flag=True, help="End the answer with the steps taken.")
@click.option("--sarif", type=click.Path(dir_okay=False, path_type=Path), help="Write an auditor's findings there.")
@click.option("--list-sessions", is_flag=True, help="List this workspace's sessions, and exit.")
@command_options(profile="coder")
def code(task: tuple[str, ...], list_sessions: bool, options: CommandOptions, **given: Any) -> int:
    """Do one task in this project: look, change, check.

    The agent sees the task, the outputs and notes that it kept, and the output of its last commands. Checkpoints are
    made before and after whatever could change files; `denizen checkpoints`, or /undo in a chat, restores them. Without
    a task, --continue or --session continues one that is unfinished, or that stopped in its copy (--shadow).
    """
    with options.host() as host, asyncio.Runner() as runner:
        loaded = decide_folder(options)
        if list_sessions:
            _, workspace = places(loaded.config)
            found = [info for info in run(runner, store().list()) if info.workspace == str(workspace)]
            print_sessions(found, as_json=options.json)
            return 0
        return run(runner, _do(" ".join(task), TaskOptions(**given), options, loaded, host))


async def _do(words: str, task: TaskOptions, options: CommandOptions, loaded: Loaded, host: Terminal | JsonHost) -> int:
    """Do the task; its exit status."""
    for text in (*loaded.notices, *unattached(words)):
        host.emit(Notice(text, "warning"))
    piped = read_piped(sys.stdin)
    goes_on = bool(options.continue_ or options.session) and not (words or piped.strip())
    parts = [] if goes_on else compose(words, places(loaded.config)[1], (), piped)
    options = await options.with_session(loaded, begun=goes_on)
    async with options.agent(loaded) as agent, opened(agent, options.session, host) as session:
        left = last_task_spec(session.entries) or TaskSpec()
        name = task.role or left.role
        role = find_role(name) if name else None
        if task.sarif and role is not AUDITOR:
            raise ConfigError("--sarif writes an auditor's findings: add --role auditor.")
        if task.commits and not repository_of(agent.workspace):
            raise ConfigError(f"--commit: {agent.workspace} isn't in a git repository.")
        if task.commits:
            await check_committer(agent.workspace, agent.record.environ)
        message = None
        if not goes_on:
            left = TaskSpec()
            if task.base:
                parts.append(await difference_to(task.base, agent))
            requests = (role.instructions if role else "", STEPS_REQUEST * task.explain, COMMIT * task.commits)
            message = UserMessage([*parts, *(Text(f"\n\n{request}") for request in requests if request)])
        spec = _task_spec(task, agent, role, host, left)
        code_task = CodeTask(agent, session, message, host, spec, options.turn(agent))
        result = await carry_out(code_task, explain=task.explain)
    if task.sarif and result.stop_reason == "answered":
        found, _ = findings_of(result.reply)
        written = msgspec.json.encode(sarif_of(found, __version__, agent.workspace))
        write_file(task.sarif, msgspec.json.format(written) + b"\n")
    return STATUS[result.stop_reason]


def _task_spec(
    task: TaskOptions, agent: Agent, role: Role | None, host: Terminal | JsonHost, left: TaskSpec
) -> TaskSpec:
    """How to do the task: as the command line says, and as the unfinished one (`left`) was to be done."""
    commits = task.commits or left.commits
    usual = (AUTO,) if (role and role.validates) or task.shadow else ()
    checks = task.checks or (() if left.validators else usual)
    own = validators_of(agent.workspace) if AUTO in checks else []
    found = [command for check in checks for command in (own if check == AUTO else [check])]
    if checks and not found:
        host.emit(Notice("No check was found in this project, so the work isn't checked. Name one: --validate CMD"))
    return TaskSpec(
        role=role.name if role else "",
        validators=found or left.validators,
        own=own or left.own,
        tries=task.tries,
        rollback=task.rollback or left.rollback,
        shadow=task.shadow or left.shadow,
        commits=commits,
        repository=left.repository or (str(repository_of(agent.workspace)) if commits else ""),
    )
