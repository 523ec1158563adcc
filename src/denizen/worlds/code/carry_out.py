"""A whole task: its turn with the checks, in the project or in a copy of it, and the commit where one is wanted."""

import functools
import re
import shlex
from dataclasses import replace
from pathlib import Path

import msgspec

from denizen.engine import TurnOptions
from denizen.errors import DenizenError
from denizen.events import Notice, RunResult
from denizen.messages import AssistantMessage, ToolResult, UserMessage
from denizen.ports import Session, TurnIO, named
from denizen.sessions import short_name
from denizen.text.plural import counted
from denizen.worlds.code.commit import by_products, commit, in_other_repositories, message_of, without_message
from denizen.worlds.code.roles import AUDITOR, find_role, findings_of, table_of
from denizen.worlds.code.work import CodeTask, Outcome, edited, message_of_task, unfinished_task_spec, work
from denizen.worlds.code.work_in_copy import work_in_copy
from denizen.worlds.world import AgentHandle, RenderingHost

_STEPS = "## Steps"
STEPS_REQUEST = f"End your answer with a section {_STEPS!r}: what you did and why, step by step."
_SECTION = re.compile(rf"^{_STEPS}\s*$", re.MULTILINE)


async def go_on(
    agent: AgentHandle, session: Session, message: UserMessage | None, io: TurnIO, options: TurnOptions
) -> RunResult | None:
    """Continue the task that the session is in the middle of; None if it is in none.

    A message goes on with a task in its copy, where alone its open calls may run; any other it leaves.
    """
    spec = unfinished_task_spec(session.entries)
    if spec is None or (message and not spec.shadow):
        return None
    return await carry_out(CodeTask(agent, session, message, io, spec, options))


async def carry_out(task: CodeTask, *, explain: bool = False) -> RunResult:
    """Do the task, or continue it, and commit its changes where the spec says so.

    With `explain` the answer says what was done, step by step. Where it is answered, but a check fails or the commit
    isn't made, it ends with an `error`. Raises what `work` raises.
    """
    spec, io = task.spec, task.io
    role = find_role(spec.role) if spec.role else None
    if role and role.reads_only:
        task = replace(task, options=replace(task.options, read_only=True))
    if isinstance(io, RenderingHost) and (role is AUDITOR or explain or spec.commits):
        io.render = functools.partial(_rendered, task, explain)
    if spec.shadow:
        again = f"denizen code --session {shlex.quote(short_name(task.session.key))}"
        outcome = await work_in_copy(task, again=again)
    else:
        outcome = await work(task)
    if outcome.failed:
        why = f"Not done: {outcome.failed.command} fails"
        io.emit(Notice(f"{why}:\n{outcome.failed.shown}", "error"))
    elif spec.commits and outcome.done and not await _commit(task, outcome):
        why = "Not committed"
    else:
        return outcome.result
    return msgspec.structs.replace(outcome.result, stop_reason="error", error=f"{why}.")


def _rendered(task: CodeTask, explain: bool, result: RunResult) -> str:
    """The answer as the person reads it, in Markdown."""
    if task.spec.role == AUDITOR.name:
        findings, others = findings_of(result.reply)
        return "\n\n".join(filter(None, ["\n".join(others), table_of(findings)]))
    reply = without_message(result.reply) if task.spec.commits else result.reply
    if not explain or _SECTION.search(result.reply):
        return reply
    # The answer lacks the steps that were asked for: they are made of the turn's calls
    record, messages = task.agent.record, result.messages
    failed = {message.call_id for message in messages if isinstance(message, ToolResult) and message.is_error}
    calls = [call for each in messages if isinstance(each, AssistantMessage) for call in record.calls_of(each)]
    shown = (record.shown(call) + (" (failed)" if call.id in failed else "") for call in calls)
    lines = [f"{number}. {line}" for number, line in enumerate(shown, 1)]
    steps = "\n".join([_STEPS, *(lines or ["1. Answered without looking anything up."])])
    return f"{reply}\n\n{steps}" if reply else steps


async def _commit(task: CodeTask, outcome: Outcome) -> bool:
    """Commit what the task's edits changed; whether nothing is left to commit."""
    workspace, environ, entries, io = task.agent.workspace, task.agent.record.environ, task.session.entries, task.io
    asked = message_of_task(entries)
    message = message_of(asked.text if asked else "", outcome.result.reply)
    others = in_other_repositories(workspace, outcome.changed)
    if others:
        io.emit(Notice(f"Not committed, because they are in other repositories: {named(others)}.", "warning"))
    ours = [path for path in outcome.changed if path not in others]
    try:
        left = await by_products(workspace, ours, edited(entries), environ)
        if left:
            io.emit(Notice(f"Not committed, because commands made them, not edits: {named(left)}.", "warning"))
        ours = [path for path in ours if path not in left]
        if not ours:
            io.emit(Notice("No project file changed, so there is nothing to commit."))
            return True
        made = await commit(workspace, ours, message, environ, repository=Path(task.spec.repository))
    except DenizenError as why:
        io.emit(Notice(f"Not committed. {why}\nThe message would have been:\n{message}", "error"))
        return False
    if not made:
        io.emit(Notice("The changes are already committed."))
        return True
    subject, _, _ = message.partition("\n")
    io.emit(Notice(f"committed {made}: {subject} ({counted(len(ours), 'file')})"))
    return True
