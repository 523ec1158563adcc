"""A task done in a copy of the project, which sees nothing of it until its changes pass."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from denizen.checkpoints import Shadow, Worktree
from denizen.engine import Agent
from denizen.engine.resume import question_of
from denizen.engine.snapshots import AFTER, BEFORE, keep
from denizen.entries import CheckpointEntry, StateEntry, SystemEntry
from denizen.errors import DenizenError
from denizen.events import Notice
from denizen.messages import UserMessage
from denizen.ports import Session, TurnIO
from denizen.worlds.code.work import Job, Outcome, allowed, attempt, begin, changed

COPY = "copy"
"""The state entry that names the copy that a session's task is done in."""

LOST = (
    "The copy of the project that you worked in is gone, and every change of yours with it: the files are as they were "
    "before the task. Make the changes again."
)
WAITS = "The project is as it was: the changes wait in the copy for the answer."
GONE = "The project is as it was: the task wasn't done, and the changes in its copy are gone."


async def work_aside(
    agent: Agent,
    session: Session,
    message: UserMessage | None,
    io: TurnIO,
    job: Job,
    *,
    beside: Callable[[Path], Agent],
) -> Outcome:
    """Do the task in a copy of the project, and bring its changes into the project only if they pass.

    `beside` makes the agent that works in the copy; what git ignores is there as links. A task that is gone on with
    goes on in the copy that was left, and where that is gone in a new one: then the agent is told. Raises what `work`
    raises, and DenizenError where the user has changed the same files meanwhile: then nothing is touched, and the copy
    stays.
    """
    if agent.checkpoints is None:
        raise DenizenError("This agent keeps no checkpoints, so there is no copy to work in.")
    await allowed(agent, io, job.validators)
    goes_on = message is None or question_of(session.entries) is not None
    if not goes_on:
        await begin(agent, session, io, job)
    async with _held(agent.checkpoints, session, io, goes_on=goes_on) as held:
        async with beside(held.copy.path) as other:
            other.read_only, other.checkpoints = agent.read_only, None  # what the copy was is of no use to the project
            outcome = await attempt(other, session, message, io, job)
        held.waits = outcome.result.stop_reason == "parked"
        if not outcome.done:
            return outcome
        before = await _apply(agent.checkpoints, held, session)
    await session.append(CheckpointEntry(snapshot=before, label=BEFORE))
    await keep(agent, session, io, AFTER)
    ours = await changed(agent.checkpoints, session)
    io.emit(Notice(f"The changes passed and are applied: {', '.join(ours) or 'none'}."))
    return replace(outcome, changed=ours)


@dataclass(slots=True)
class _Held:
    """A copy that is worked in. It `waits` for an answer; its changes are `applied`, or it `stays` as they can't be."""

    copy: Worktree
    waits: bool = False
    applied: bool = False
    stays: bool = False


@asynccontextmanager
async def _held(checkpoints: Shadow, session: Session, io: TurnIO, *, goes_on: bool) -> AsyncGenerator[_Held]:
    """The copy to work in, and what becomes of it."""
    held = _Held(await _copy(checkpoints, session, io, goes_on=goes_on))
    try:
        yield held
    finally:
        if held.waits:
            io.emit(Notice(WAITS))
        elif not held.stays:
            await held.copy.discard()
            if not held.applied:
                io.emit(Notice(GONE, "warning"))


async def _copy(checkpoints: Shadow, session: Session, io: TurnIO, *, goes_on: bool) -> Worktree:
    """The copy to work in: a new one, or where a task goes on the one that was left."""
    left = await _left(checkpoints, session)
    if left and goes_on:
        io.emit(Notice("The copy of the project is still there: the task goes on in it."))
        return left
    if left:
        io.emit(Notice("The copy that an earlier task had left is removed.", "warning"))
        await left.discard()
    if goes_on:
        await session.append(SystemEntry(text=LOST))
    made = await checkpoints.copy(await checkpoints.snapshot())
    await _note(session, str(made.folder))
    return made


async def _left(checkpoints: Shadow, session: Session) -> Worktree | None:
    """The copy that an earlier process left, where it was this session's: a fork has the same entries."""
    states = (entry for entry in reversed(session.entries) if isinstance(entry, StateEntry) and entry.name == COPY)
    latest = next((entry.value for entry in states if entry.value["session"] == session.key), None)
    return await checkpoints.copy_in(Path(latest["folder"])) if latest and latest["folder"] else None


async def _note(session: Session, folder: str) -> None:
    await session.append(StateEntry(name=COPY, value={"session": session.key, "folder": folder}))


async def _apply(checkpoints: Shadow, held: _Held, session: Session) -> str:
    """Bring what was done into the project; where that can't be done, the copy is the user's from then on."""
    try:
        before = await checkpoints.apply(held.copy)
    except DenizenError as why:
        held.stays = True
        await _note(session, "")
        why.reword(f"{why} What was done is in {held.copy.path}.")
        raise
    held.applied = True
    return before
