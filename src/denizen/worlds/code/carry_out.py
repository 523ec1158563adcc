"""A task from its turn to its end: checked, in the project or in a copy of it, and committed where it should be."""

import dataclasses
import functools
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from denizen.engine import TurnOptions
from denizen.errors import DenizenError
from denizen.events import Notice, RunResult
from denizen.messages import AssistantMessage, Message, ToolResult, UserMessage
from denizen.plural import counted
from denizen.ports import Session, TurnIO, named
from denizen.sessions import short_name
from denizen.worlds.code.aside import work_aside
from denizen.worlds.code.commit import by_products, commit, in_other_repositories, message_of, without_message
from denizen.worlds.code.findings import findings_of, table_of
from denizen.worlds.code.roles import AUDITOR, find_role
from denizen.worlds.code.work import Job, Outcome, edited, unfinished_job, words_of, work
from denizen.worlds.world import AgentHandle, Conclusion, RenderingHost

_STEPS = "## Steps"
STEPS_REQUEST = f"End your answer with a section {_STEPS!r}: what you did and why, step by step."
_SECTION = re.compile(rf"^{_STEPS}\s*$", re.MULTILINE)


async def go_on(agent: AgentHandle, session: Session, io: TurnIO, options: TurnOptions) -> Conclusion | None:
    """Go on with the task that the session is in the middle of; None where it is in none."""
    job = unfinished_job(session.entries)
    return await carry_out(agent, session, None, io, job=job, options=options) if job else None


async def carry_out(
    agent: AgentHandle,
    session: Session,
    message: UserMessage | None,
    io: TurnIO,
    *,
    job: Job,
    options: TurnOptions,
    explain: bool = False,
) -> Conclusion:
    """Do the task, or go on with it (`message` None), and what is to become of its changes.

    With `explain` the answer says what was done, step by step. Raises what `work` raises.
    """
    role = find_role(job.role) if job.role else None
    options = dataclasses.replace(options, read_only=options.read_only or bool(role and role.reads_only))
    if isinstance(io, RenderingHost) and (role is AUDITOR or explain or job.commits):
        io.render = functools.partial(_rendered, agent, job, explain)
    if job.shadow:
        again = f"denizen code --session {shlex.quote(short_name(session.key))}"
        outcome = await work_aside(agent, session, message, io, job=job, options=options, again=again)
    else:
        outcome = await work(agent, session, message, io, job=job, options=options)
    if outcome.failed:
        io.emit(Notice(f"Not done, as {outcome.failed.command} fails:\n{outcome.failed.shown}", "error"))
        return Conclusion(outcome.result, failed=True)
    committed = (
        await _commit(agent, session, io, outcome, Path(job.repository)) if job.commits and outcome.done else True
    )
    return Conclusion(outcome.result, failed=not committed)


def _rendered(agent: AgentHandle, job: Job, explain: bool, result: RunResult) -> str:
    """The answer as the person reads it, in Markdown."""
    if job.role == AUDITOR.name:
        findings, others = findings_of(result.reply)
        return "\n\n".join(filter(None, ["\n".join(others), table_of(findings)]))
    reply = without_message(result.reply) if job.commits else result.reply
    taken = _steps_taken(agent, result.reply, result.messages) if explain else ""
    return "\n\n".join(filter(None, [reply, taken]))


async def _commit(agent: AgentHandle, session: Session, io: TurnIO, outcome: Outcome, repository: Path) -> bool:
    """Commit what the task changed, but for what commands left; whether there is nothing left to commit."""
    environ = agent.record.environ
    message = message_of(words_of(session.entries), outcome.result.reply)
    others = in_other_repositories(agent.workspace, outcome.changed)
    if others:
        io.emit(Notice(f"In repositories of their own, and so not committed: {named(others)}.", "warning"))
    ours = [path for path in outcome.changed if path not in others]
    try:
        left = await by_products(agent.workspace, ours, edited(session.entries), environ)
        if left:
            io.emit(Notice(f"Made by commands, not by edits, and so not committed: {named(left)}.", "warning"))
        ours = [path for path in ours if path not in left]
        if not ours:
            io.emit(Notice("Nothing of the project was changed, so nothing is committed."))
            return True
        made = await commit(agent.workspace, ours, message, environ, repository=repository)
    except DenizenError as why:
        io.emit(Notice(f"Not committed. {why}\nIts message was to be:\n{message}", "error"))
        return False
    if not made:
        io.emit(Notice("What was changed is committed already."))
        return True
    subject, _, _ = message.partition("\n")
    io.emit(Notice(f"committed {made}: {subject} ({counted(len(ours), 'file')})"))
    return True


def _steps_taken(agent: AgentHandle, reply: str, messages: Sequence[Message]) -> str:
    """The steps that the answer lacks, made of the calls of the turn; empty where it has them."""
    if _SECTION.search(reply):
        return ""
    failed = {message.call_id for message in messages if isinstance(message, ToolResult) and message.is_error}
    record = agent.record
    replies = [message for message in messages if isinstance(message, AssistantMessage)]
    calls = [call for reply in replies for call in record.calls_of(reply)]
    shown = (record.shown(call) + (" (failed)" if call.id in failed else "") for call in calls)
    steps = [f"{number}. {line}" for number, line in enumerate(shown, 1)]
    return "\n".join([_STEPS, *(steps or ["1. Answered without looking anything up."])])
