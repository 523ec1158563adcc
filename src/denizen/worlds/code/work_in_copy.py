"""A task done in a copy of the project, which changes only when the task's changes pass."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec

from denizen.checkpoints import Shadow, Worktree
from denizen.engine.resume import nothing_left, unfinished
from denizen.entries import CheckpointEntry, StateEntry, SystemEntry, UserEntry
from denizen.errors import DenizenError
from denizen.events import Notice
from denizen.messages import Text, UserMessage
from denizen.ports import Session, TurnIO
from denizen.ports.checkpoints import AFTER, BEFORE
from denizen.runtime.cancellation import run_to_completion
from denizen.worlds.code.work import TAKEN_BACK, CodeTask, Outcome, attempt, changed, message_of_task, prepare

COPY = "copy"
"""The state entry that names the copy that a session's task is done in."""

LOST = (
    "The copy of the project that you worked in is gone, with all your changes: the files are as they were before the "
    "task. Make the changes again."
)
STOPPED = "(This task was begun before and stopped. Your changes so far are there: find what is left to do, and do it.)"
WAITS = "The project is unchanged: the changes are in the copy until the question is answered."
GONE = "The project is unchanged: the task failed, and its copy was deleted."
NOTHING = "The project is unchanged: nothing changed in the copy, which was deleted."

_End = Literal["stopped", "waiting", "failed", "applied"]
"""What became of the work in a copy: `waiting` for a person's answer; its checks `failed`; `stopped` otherwise."""


async def work_in_copy(task: CodeTask, *, again: str) -> Outcome:
    """Do the task in a copy of the project, and apply its changes to the project only if they pass.

    What git ignores is linked into the copy. The copy is deleted once its changes are applied or have failed their
    checks. If anything else ends the task, the copy stays: the user reads where it is, and that `again` continues the
    task. The task, or a new message, then continues in that copy; if it is gone, in a new one, and the agent sees that.

    Raises what `work` raises, SessionError if nothing is left to do, and DenizenError where the user has changed
    the same files meanwhile: then no file is touched.
    """
    session, io, checkpoints = task.session, task.io, task.agent.checkpoints
    if checkpoints is None:
        raise DenizenError("--shadow needs checkpoints, and this agent keeps none.")
    task = replace(task, message=task.message or _task_again(session))
    await prepare(task)
    copy = await _find_or_make_copy(checkpoints, session, io)
    end: _End = "stopped"

    async def apply() -> Sequence[str]:
        nonlocal end
        # What undoing needs comes first: the process may be killed while files are written
        await session.append(CheckpointEntry(snapshot=await checkpoints.snapshot(), label=BEFORE))
        try:
            await checkpoints.apply(copy)
            end = "applied"
        finally:
            await task.snapshot(AFTER)
        paths = await changed(checkpoints, session)
        io.emit(Notice(f"The changes are applied: {', '.join(paths) or 'none'}."))
        return paths

    try:
        async with task.agent.elsewhere(copy.path, copy.linked_folders, checkpoints=False) as other:
            outcome = await attempt(replace(task, agent=other))
        if outcome.done:
            return replace(outcome, changed=await run_to_completion(apply()))
        if outcome.result.stop_reason == "parked":
            end = "waiting"
        elif outcome.result.stop_reason == "answered":
            end = "failed"
        return outcome
    except asyncio.CancelledError:
        if end == "applied" and task.spec.commits:
            io.emit(Notice("Stopped before the commit: the changes are in the project, uncommitted.", "warning"))
        raise
    finally:
        await _leave_copy(checkpoints, session, io, copy, end=end, again=again)


async def _leave_copy(
    checkpoints: Shadow, session: Session, io: TurnIO, copy: Worktree, *, end: _End, again: str
) -> None:
    """Delete the copy, unless it holds changes that are still wanted."""
    if end == "waiting":
        io.emit(Notice(WAITS))
        return
    if end == "stopped":
        try:
            stays = await checkpoints.worked_in(copy)
        except DenizenError:  # nobody knows whether something was changed, so the copy stays
            stays = True
        if stays:
            where = f"The work so far is in {copy.path}. Continue there: {again}"
            io.emit(Notice(f"Not applied. {where}", "error"))
            return
    await _record_copy(session, "")
    if end == "failed":
        await session.append(SystemEntry(text=TAKEN_BACK))
    await copy.discard()
    if end != "applied":
        io.emit(Notice(GONE if end == "failed" else NOTHING, "warning"))


async def _find_or_make_copy(checkpoints: Shadow, session: Session, io: TurnIO) -> Worktree:
    """The copy that the session's last task has left, else a new one."""
    recorded, is_current = _recorded_copy(session)
    is_own = recorded and recorded.session == session.key  # a fork has the same entries, but not the copy
    left = await checkpoints.copy_in(Path(recorded.folder)) if recorded and is_own else None
    if left and is_current:
        io.emit(Notice("Continuing in the copy of the project."))
        return left
    if left:
        await left.discard()
    elif recorded and is_current:
        await session.append(SystemEntry(text=LOST))
    made = await checkpoints.copy(await checkpoints.snapshot())
    await _record_copy(session, str(made.folder))
    return made


def _task_again(session: Session) -> UserMessage | None:
    """The message of a task that ended and left its changes in a copy, to send once more; None: it is unfinished.

    Raises SessionError if nothing is left to do.
    """
    if unfinished(session.entries):
        return None
    message, (recorded, is_current) = message_of_task(session.entries), _recorded_copy(session)
    if not message or not recorded or not is_current:
        raise nothing_left(session)
    hint = Text(f"\n\n{STOPPED}")
    return UserMessage([*(part for part in message.content if part != hint), hint])


class _CopyFolder(msgspec.Struct, frozen=True):
    """The value of a `copy`: the key of its session, and its folder; empty: it is gone."""

    session: str
    folder: str


def _recorded_copy(session: Session) -> tuple[_CopyFolder | None, bool]:
    """The last copy that a task left, and whether that task is in the transcript: it may have been undone."""
    is_current = False
    for entry in reversed(session.entries):
        if isinstance(entry, StateEntry) and entry.name == COPY and (recorded := entry.read(_CopyFolder)):
            return recorded if recorded.folder else None, is_current
        is_current = is_current or isinstance(entry, UserEntry)
    return None, is_current


async def _record_copy(session: Session, folder: str) -> None:
    await session.append(StateEntry(name=COPY, value=msgspec.to_builtins(_CopyFolder(session.key, folder))))
