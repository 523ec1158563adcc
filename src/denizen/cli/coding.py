"""Doing a task in a project for the command line, and what becomes of its changes."""

import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from denizen import __version__
from denizen.cli.attachments import compose, read_piped, unattached
from denizen.cli.host import JsonLines
from denizen.cli.options import TurnOptions
from denizen.cli.output import write_file
from denizen.cli.sessions import print_sessions
from denizen.cli.terminal import Terminal
from denizen.cli.turns import STATUS, opened
from denizen.config.home import places
from denizen.config.load import Loaded
from denizen.errors import ConfigError
from denizen.events import Notice
from denizen.messages import Text, UserMessage, UserPart
from denizen.worlds.assemble import Agent
from denizen.worlds.code.carry_out import STEPS_REQUEST, carry_out
from denizen.worlds.code.commit import REQUEST as COMMIT
from denizen.worlds.code.commit import (
    repository_of,
)
from denizen.worlds.code.difference import difference_to
from denizen.worlds.code.findings import findings_of, sarif_of
from denizen.worlds.code.roles import AUDITOR, Role, find_role
from denizen.worlds.code.validators import validators_of
from denizen.worlds.code.work import Job, last_job

AUTO = "auto"
"""The check that stands for those of the project."""

Host = Terminal | JsonLines


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the command line said of the task."""

    words: str
    role: str
    base: str
    checks: tuple[str, ...]
    tries: int
    rollback: bool
    shadow: bool
    commits: bool
    explain: bool
    sarif: Path | None


async def do(wanted: Wanted, options: TurnOptions, loaded: Loaded, host: Host) -> int:
    """Do the task; its exit status."""
    for text in (*loaded.notices, *unattached(wanted.words)):
        host.emit(Notice(text, "warning"))
    piped = read_piped(sys.stdin)
    goes_on = bool(options.continue_ or options.session) and not (wanted.words or piped.strip())
    said = None if goes_on else compose(wanted.words, places(loaded.config)[1], (), piped)
    options = await options.with_session(loaded, begun=goes_on)
    async with options.agent(loaded) as agent, opened(agent, options.session, host) as session:
        left = last_job(session.entries) or Job()
        role = _role(wanted.role or left.role)
        _check(wanted, agent, role)
        message = await _message(wanted, agent, role, said) if said else None
        job = _job(wanted, agent, role, host, left if message is None else Job())
        conclusion = await carry_out(
            agent, session, message, host, job=job, options=options.turn(agent), explain=wanted.explain
        )
    result = conclusion.result
    if wanted.sarif and result.stop_reason == "answered":
        found, _ = findings_of(result.reply)
        written = msgspec.json.encode(sarif_of(found, __version__, agent.workspace))
        write_file(wanted.sarif, msgspec.json.format(written) + b"\n")
    return STATUS["error"] if conclusion.failed else STATUS[result.stop_reason]


async def list_here(options: TurnOptions, loaded: Loaded) -> int:
    """Print the sessions of this workspace."""
    async with options.agent(loaded) as agent:
        found = [info for info in await agent.store.list() if info.workspace == str(agent.workspace)]
    print_sessions(found, as_json=options.json)
    return 0


async def _message(wanted: Wanted, agent: Agent, role: Role | None, said: list[UserPart]) -> UserMessage:
    parts = [*said]
    if wanted.base:
        parts.append(await difference_to(wanted.base, agent))
    requests = (role.instructions if role else "", STEPS_REQUEST if wanted.explain else "", COMMIT * wanted.commits)
    parts += [Text(f"\n\n{request}") for request in requests if request]
    return UserMessage(parts)


def _role(name: str) -> Role | None:
    return find_role(name) if name else None


def _check(wanted: Wanted, agent: Agent, role: Role | None) -> None:
    """Raise ConfigError for what can't be had, before anything is spent on it."""
    if wanted.sarif and role is not AUDITOR:
        raise ConfigError("--sarif writes down what an auditor found: add --role auditor.")
    if wanted.commits and not repository_of(agent.workspace):
        raise ConfigError(f"--commit: {agent.workspace} is in no git repository.")


def _job(wanted: Wanted, agent: Agent, role: Role | None, host: Host, left: Job) -> Job:
    """How the task is to be done: as the command line says, and as one that is gone on with (`left`) was to be."""
    commits = wanted.commits or left.commits
    usual = (AUTO,) if (role and role.validates) or wanted.shadow else ()
    checks = wanted.checks or (() if left.validators else usual)
    own = validators_of(agent.workspace) if AUTO in checks else []
    found = [command for check in checks for command in (own if check == AUTO else [check])]
    if checks and not found:
        host.emit(Notice("No check was found in this project, so the work isn't checked. --validate CMD names one."))
    return Job(
        role=role.name if role else "",
        validators=found or left.validators,
        own=own or left.own,
        tries=wanted.tries,
        rollback=wanted.rollback or left.rollback,
        shadow=wanted.shadow or left.shadow,
        commits=commits,
        repository=left.repository or (str(repository_of(agent.workspace)) if commits else ""),
    )
