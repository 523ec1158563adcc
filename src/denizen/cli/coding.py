"""Doing a task in a project for the command line, and what becomes of its changes."""

import dataclasses
import functools
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from denizen import __version__
from denizen.cli.attachments import compose, read_piped, unattached
from denizen.cli.json_lines import JsonLines
from denizen.cli.options import TurnOptions
from denizen.cli.sessions import print_sessions
from denizen.cli.table import table
from denizen.cli.terminal import Terminal
from denizen.cli.turns import STATUS, opened
from denizen.config.files import write_private
from denizen.config.load import Loaded
from denizen.engine import Agent
from denizen.errors import DenizenError
from denizen.events import Notice, RunResult
from denizen.messages import Text, UserMessage, UserPart
from denizen.worlds.code import steps
from denizen.worlds.code.commit import REQUEST as COMMIT
from denizen.worlds.code.commit import commit, message_of
from denizen.worlds.code.difference import difference_to
from denizen.worlds.code.findings import findings_of, rows_of, sarif_of
from denizen.worlds.code.roles import AUDITOR, Role, find_role
from denizen.worlds.code.validators import validators_of
from denizen.worlds.code.work import Job, Outcome, role_of, work, work_aside

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
    resumes = bool(options.continue_ or options.session)
    options = await options.at_session(loaded)
    async with options.agent(loaded) as agent, opened(agent, options.session, host) as session:
        name = wanted.role or role_of(session.entries)
        role = find_role(name) if name else None
        agent.read_only = agent.read_only or bool(role and role.reads_only)
        if isinstance(host, Terminal) and (role is AUDITOR or wanted.explain):
            host.render = functools.partial(_rendered, agent, role)
        message = await _message(wanted, agent, role, resumes=resumes)
        job = _job(wanted, agent, role)
        if wanted.shadow:
            outcome = await work_aside(
                agent, session, message, host, job, beside=functools.partial(_beside, options, loaded)
            )
        else:
            outcome = await work(agent, session, message, host, job, stream=not options.no_stream)
        return await _conclude(wanted, agent, host, outcome)


async def list_here(options: TurnOptions, loaded: Loaded) -> int:
    """Print the sessions of this workspace."""
    async with options.agent(loaded) as agent:
        found = [info for info in await agent.store.list() if info.workspace == str(agent.workspace)]
    print_sessions(found, as_json=options.json)
    return 0


async def _message(wanted: Wanted, agent: Agent, role: Role | None, *, resumes: bool) -> UserMessage | None:
    piped = read_piped(sys.stdin)
    if resumes and not (wanted.words or piped.strip()):
        return None
    parts: list[UserPart] = compose(wanted.words, (), piped)
    if wanted.base:
        parts.append(await difference_to(wanted.base, agent))
    requests = (role.instructions if role else "", steps.REQUEST if wanted.explain else "", COMMIT * wanted.commits)
    parts += [Text(f"\n\n{request}") for request in requests if request]
    return UserMessage(parts)


def _job(wanted: Wanted, agent: Agent, role: Role | None) -> Job:
    checks = wanted.checks or ((AUTO,) if (role and role.validates) or wanted.shadow else ())
    found = [command for check in checks for command in (validators_of(agent.workspace) if check == AUTO else [check])]
    return Job(role=role.name if role else "", validators=found, tries=wanted.tries, rollback=wanted.rollback)


def _rendered(agent: Agent, role: Role | None, result: RunResult) -> str:
    if role is AUDITOR:
        findings, others = findings_of(result.reply)
        rows = table(("severity", "place", "finding"), rows_of(findings), elastic="finding") if findings else ""
        return "\n".join(filter(None, ["\n".join(others), rows]))
    return "\n\n".join(filter(None, [result.reply, steps.explained(agent, result.reply, result.messages)]))


def _beside(options: TurnOptions, loaded: Loaded, folder: Path) -> Agent:
    """The same agent in another folder."""
    config = msgspec.structs.replace(loaded.config, workspace=folder)
    return options.agent(dataclasses.replace(loaded, config=config))


async def _conclude(wanted: Wanted, agent: Agent, host: Host, outcome: Outcome) -> int:
    reply = outcome.result.reply
    if outcome.failed:
        host.emit(Notice(f"{outcome.failed.command} fails:\n{outcome.failed.output}", "error"))
    if wanted.sarif and outcome.result.stop_reason == "answered":
        sarif = msgspec.json.format(msgspec.json.encode(sarif_of(findings_of(reply)[0], __version__)))
        write_private(wanted.sarif, sarif + b"\n")
    if wanted.commits and outcome.done:
        try:
            made = await commit(agent.workspace, outcome.changed, message_of(wanted.words, reply), agent.environ)
            host.emit(Notice(f"committed {made}: {len(outcome.changed)} files"))
        except DenizenError as why:
            host.emit(Notice(f"Not committed. {why}", "error"))
            return STATUS["error"]
    return STATUS["error"] if outcome.failed else STATUS[outcome.result.stop_reason]
