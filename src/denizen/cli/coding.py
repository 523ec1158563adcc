"""Doing a task in a project for the command line, and what becomes of its changes."""

import dataclasses
import functools
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from denizen import __version__
from denizen.checkpoints import named
from denizen.cli.attachments import compose, read_piped, unattached
from denizen.cli.home import short_name
from denizen.cli.host import JsonLines
from denizen.cli.options import TurnOptions
from denizen.cli.output import write_file
from denizen.cli.sessions import print_sessions
from denizen.cli.terminal import Terminal
from denizen.cli.turns import STATUS, opened
from denizen.config import Config
from denizen.config.home import places
from denizen.config.load import Loaded
from denizen.engine import Agent
from denizen.errors import ConfigError, DenizenError
from denizen.events import Notice, RunResult
from denizen.messages import Text, UserMessage, UserPart
from denizen.plural import counted
from denizen.ports import Session
from denizen.worlds.code import steps
from denizen.worlds.code.aside import work_aside
from denizen.worlds.code.commit import REQUEST as COMMIT
from denizen.worlds.code.commit import (
    by_products,
    commit,
    in_other_repositories,
    message_of,
    repository_of,
    without_message,
)
from denizen.worlds.code.difference import difference_to
from denizen.worlds.code.findings import findings_of, sarif_of, table_of
from denizen.worlds.code.roles import AUDITOR, Role, find_role
from denizen.worlds.code.validators import validators_of
from denizen.worlds.code.work import Job, Outcome, edited, last_job, words_of, work

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
        return await carry_out(
            agent,
            session,
            message,
            job=job,
            host=host,
            options=options,
            loaded=loaded,
            explain=wanted.explain,
            sarif=wanted.sarif,
        )


async def carry_out(
    agent: Agent,
    session: Session,
    message: UserMessage | None,
    *,
    job: Job,
    host: Host,
    options: TurnOptions,
    loaded: Loaded,
    explain: bool = False,
    sarif: Path | None = None,
) -> int:
    """Do the task, or go on with it (`message` None), and what is to become of its changes; the exit status."""
    role = _role(job.role)
    agent.read_only = agent.read_only or bool(role and role.reads_only)
    if isinstance(host, Terminal) and (role is AUDITOR or explain or job.commits):
        host.render = functools.partial(_rendered, agent, job, explain)
    if job.shadow:
        beside = functools.partial(_beside, options, loaded)
        again = f"denizen code --session {shlex.quote(short_name(session.key))}"
        outcome = await work_aside(agent, session, message, host, job, beside=beside, again=again)
    else:
        outcome = await work(agent, session, message, host, job, stream=not options.no_stream)
    if sarif and outcome.result.stop_reason == "answered":
        _write_sarif(sarif, outcome.result.reply, agent.workspace)
    return await _conclude(agent, session, job, host, outcome)


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
    requests = (role.instructions if role else "", steps.REQUEST if wanted.explain else "", COMMIT * wanted.commits)
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


def _rendered(agent: Agent, job: Job, explain: bool, result: RunResult) -> str:
    """The answer as the person reads it, in Markdown."""
    if _role(job.role) is AUDITOR:
        findings, others = findings_of(result.reply)
        return "\n\n".join(filter(None, ["\n".join(others), table_of(findings)]))
    reply = without_message(result.reply) if job.commits else result.reply
    taken = steps.explained(agent, result.reply, result.messages) if explain else ""
    return "\n\n".join(filter(None, [reply, taken]))


def _beside(options: TurnOptions, loaded: Loaded, config: Config) -> Agent:
    """The same agent with another configuration."""
    return options.agent(dataclasses.replace(loaded, config=config))


def _write_sarif(path: Path, reply: str, workspace: Path) -> None:
    found, _ = findings_of(reply)
    write_file(path, msgspec.json.format(msgspec.json.encode(sarif_of(found, __version__, workspace))) + b"\n")


async def _conclude(agent: Agent, session: Session, job: Job, host: Host, outcome: Outcome) -> int:
    if outcome.failed:
        host.emit(Notice(f"Not done, as {outcome.failed.command} fails:\n{outcome.failed.shown}", "error"))
        return STATUS["error"]
    if job.commits and outcome.done:
        return await _commit(agent, session, host, outcome, Path(job.repository))
    return STATUS[outcome.result.stop_reason]


async def _commit(agent: Agent, session: Session, host: Host, outcome: Outcome, repository: Path) -> int:
    message = message_of(words_of(session.entries), outcome.result.reply)
    others = in_other_repositories(agent.workspace, outcome.changed)
    if others:
        host.emit(Notice(f"In repositories of their own, and so not committed: {named(others)}.", "warning"))
    ours = [path for path in outcome.changed if path not in others]
    try:
        left = await by_products(agent.workspace, ours, edited(session.entries), agent.environ)
        if left:
            host.emit(Notice(f"Made by commands, not by edits, and so not committed: {named(left)}.", "warning"))
        ours = [path for path in ours if path not in left]
        if not ours:
            host.emit(Notice("Nothing of the project was changed, so nothing is committed."))
            return 0
        made = await commit(agent.workspace, ours, message, agent.environ, repository=repository)
    except DenizenError as why:
        host.emit(Notice(f"Not committed. {why}\nIts message was to be:\n{message}", "error"))
        return STATUS["error"]
    if not made:
        host.emit(Notice("What was changed is committed already."))
        return 0
    subject, _, _ = message.partition("\n")
    host.emit(Notice(f"committed {made}: {subject} ({counted(len(ours), 'file')})"))
    return 0
