"""A task done in a copy of the project, which sees nothing of it until its changes pass."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from denizen.cancellation import run_to_completion
from denizen.checkpoints import Shadow, Worktree
from denizen.engine import TurnOptions
from denizen.engine.resume import nothing_left, question_of, unfinished
from denizen.engine.snapshots import AFTER, BEFORE, take_snapshot
from denizen.entries import CheckpointEntry, StateEntry, SystemEntry, UserEntry
from denizen.errors import DenizenError
from denizen.events import Notice
from denizen.messages import Text, UserMessage
from denizen.ports import Session, TurnIO
from denizen.worlds.code.work import TAKEN_BACK, Job, Outcome, allowed, attempt, begin, changed, message_of_task
from denizen.worlds.world import AgentHandle

COPY = "copy"
"""The state entry that names the copy that a session's task is done in."""

LOST = (
    "The copy of the project that you worked in is gone, and every change of yours with it: the files are as they were "
    "before the task. Make the changes again."
)
STOPPED = "(This was begun before and stopped. What you did for it is there: see what is left to do, and do it.)"
WAITS = "The project is as it was: the changes wait in the copy for the answer."
GONE = "The project is as it was: the task wasn't done, and the changes in its copy are gone."
NOTHING = "The project is as it was: nothing was changed in its copy, which is gone."


async def work_aside(
    agent: AgentHandle,
    session: Session,
    message: UserMessage | None,
    io: TurnIO,
    *,
    job: Job,
    options: TurnOptions,
    again: str,
) -> Outcome:
    """Do the task in a copy of the project, and bring its changes into the project only if they pass.

    What git ignores is in the copy as links. It goes once its changes are applied, or have failed their checks;
    whatever else ends the task, it stays, and the user reads where it is, and that `again` goes on with the task. That
    is done in the copy that was left, also by a new message; where it is gone, in a new one, and the agent is told.

    Raises what `work` raises, SessionError where there is nothing to go on with, and DenizenError where the user has
    changed the same files meanwhile: then nothing is touched.
    """
    if agent.checkpoints is None:
        raise DenizenError("This agent keeps no checkpoints, so there is no copy to work in.")
    message = message or _once_more(session)
    await allowed(agent, io, job.validators)
    if message and not question_of(session.entries):
        await begin(agent, session, io, job)
    async with _held(agent.checkpoints, session, io, again) as held:
        async with agent.elsewhere(held.copy.path, held.copy.linked_folders, checkpoints=False) as other:
            outcome = await attempt(other, session, message, io, job=job, options=options)
        if outcome.done:
            return replace(outcome, changed=await _apply(agent, session, io, held, job))
        held.waits = outcome.result.stop_reason == "parked"
        held.failed = outcome.result.stop_reason == "answered"
        return outcome


@dataclass(slots=True)
class _Held:
    """A copy that is worked in, and what became of it: the task `waits` for an answer, its changes `failed` their
    checks, or they are `applied`; else the task was stopped.
    """

    checkpoints: Shadow
    copy: Worktree
    waits: bool = False
    failed: bool = False
    applied: bool = False


@asynccontextmanager
async def _held(checkpoints: Shadow, session: Session, io: TurnIO, again: str) -> AsyncGenerator[_Held]:
    """The copy to work in, and what becomes of it."""
    held = _Held(checkpoints, await _copy(checkpoints, session, io))
    try:
        yield held
    finally:
        if held.waits:
            io.emit(Notice(WAITS))
        elif held.applied or held.failed or not await _worked_in(held):
            await _note(session, "")
            if held.failed:
                await session.append(SystemEntry(text=TAKEN_BACK))
            await held.copy.discard()
            if not held.applied:
                io.emit(Notice(GONE if held.failed else NOTHING, "warning"))
        else:
            where = f"What was done so far is in {held.copy.path}; to go on there: {again}"
            io.emit(Notice(f"Not applied. {where}", "error"))


async def _worked_in(held: _Held) -> bool:
    try:
        return await held.checkpoints.worked_in(held.copy)
    except DenizenError:  # what can't be known may be so: the copy stays
        return True


async def _copy(checkpoints: Shadow, session: Session, io: TurnIO) -> Worktree:
    """The copy to work in: the one that the session's last task has left, else a new one."""
    noted = _noted(session)
    if left := await _left(checkpoints, session, noted):
        io.emit(Notice("The copy of the project is still there: the task goes on in it."))
        return left
    if noted:
        await session.append(SystemEntry(text=LOST))
    elif taken_back := await _left(checkpoints, session, _last_noted(session)[0]):
        await taken_back.discard()
    made = await checkpoints.copy(await checkpoints.snapshot())
    await _note(session, str(made.folder))
    return made


def _once_more(session: Session) -> UserMessage | None:
    """The message of the task again, where its turn has ended and its changes are in a copy; None: it is unfinished.

    Raises SessionError where there is nothing left to do.
    """
    if unfinished(session.entries):
        return None
    said = message_of_task(session.entries)
    if not said or not _noted(session):
        raise nothing_left(session)
    told = Text(f"\n\n{STOPPED}")
    return UserMessage([*(part for part in said.content if part != told), told])


class _Note(msgspec.Struct, frozen=True):
    """The value of a `copy`: whose it is, and the folder that it is in; empty: it is gone."""

    session: str
    folder: str


def _noted(session: Session) -> _Note | None:
    """What is noted of the copy that the session's last task has left; None where it left none, or was taken back."""
    noted, said = _last_noted(session)
    return noted if said else None


def _last_noted(session: Session) -> tuple[_Note | None, bool]:
    """What is noted of the last copy that was left, and whether its task is there: it may have been taken back."""
    said = False
    for entry in reversed(session.entries):
        if isinstance(entry, StateEntry) and entry.name == COPY and (noted := entry.read(_Note)):
            return noted if noted.folder else None, said
        said = said or isinstance(entry, UserEntry)
    return None, said


async def _left(checkpoints: Shadow, session: Session, noted: _Note | None) -> Worktree | None:
    """The copy that is noted, where it was this session's: a fork has the same entries."""
    return await checkpoints.copy_in(Path(noted.folder)) if noted and noted.session == session.key else None


async def _note(session: Session, folder: str) -> None:
    await session.append(StateEntry(name=COPY, value=msgspec.to_builtins(_Note(session.key, folder))))


async def _apply(agent: AgentHandle, session: Session, io: TurnIO, held: _Held, job: Job) -> Sequence[str]:
    """Bring what was done into the project, all of it when cancelled, too; returns the paths."""
    try:
        return await run_to_completion(_bring_in(agent, session, io, held))
    except asyncio.CancelledError:
        if job.commits:
            io.emit(Notice("Stopped before the commit: the changes are in the project, uncommitted.", "warning"))
        raise


async def _bring_in(agent: AgentHandle, session: Session, io: TurnIO, held: _Held) -> Sequence[str]:
    """Bring it in, and keep what undoing it needs: first what the files are, as the process may be killed amid it."""
    await session.append(CheckpointEntry(snapshot=await held.checkpoints.snapshot(), label=BEFORE))
    try:
        await held.checkpoints.apply(held.copy)
        held.applied = True
    finally:
        await take_snapshot(agent.record, session, io, AFTER)
    ours = await changed(held.checkpoints, session)
    io.emit(Notice(f"The changes are applied: {', '.join(ours) or 'none'}."))
    return ours
