"""Taking the last turn back, and forward again: files and conversation together (decisions, "Undo")."""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

import msgspec

from denizen.engine.record import AgentRecord
from denizen.engine.resume import UNDONE, unfinished
from denizen.entries import (
    AnyEntry,
    AssistantEntry,
    CheckpointEntry,
    EndEntry,
    StateEntry,
    SystemEntry,
    ToolEntry,
    UserEntry,
)
from denizen.errors import DenizenError, SessionError
from denizen.messages import ToolResult
from denizen.ports import Checkpoints, Conflict, Session
from denizen.ports.checkpoints import AFTER, BEFORE, CheckpointSpan, Pair, span_of

UNDO_INTENT = "undo"
"""The state entry that says what an undo, or a redo, is about to do: a crash then doesn't leave it half done."""


class HeadMove(msgspec.Struct, frozen=True, omit_defaults=True):
    """To which entry the head goes, and what becomes of the files: those that changed between the snapshots of `ours`
    (all, where there are none) become as they are in `snapshot`, unless they differ from `expect` by now. Those in
    `but` stay as they are.

    The model then reads `told`; `back` takes the move back. `by` is the message that asks for it, if any.
    """

    to: str
    snapshot: str = ""
    expect: str = ""
    ours: list[Pair] = []
    told: str = ""
    back: "HeadMove | None" = None
    but: Sequence[str] = ()
    by: str = ""


class Reversal(NamedTuple):
    """What an undo or a redo would do.

    An undo takes back the user message `said` (unknown for a redo). Files that changed between the snapshots `ours` go
    from their state in snapshot `now` to that in `then`.
    """

    said: str
    now: str
    then: str
    ours: Sequence[Pair]


def next_undo(entries: Sequence[AnyEntry]) -> Reversal | None:
    """What `undo` would do in a session with these entries; None: there is nothing to undo."""
    first = _last_turn(entries)
    if first is None:
        return None
    span = span_of(entries[first:])
    return Reversal(_user_text(entries[first]), span.last, span.first, span.ours)


def next_redo(entries: Sequence[AnyEntry]) -> Reversal | None:
    """What `redo` would do in a session with these entries; None: there is nothing to redo."""
    last = entries[-1] if entries else None
    move = last.read(HeadMove) if isinstance(last, StateEntry) and last.name == UNDONE else None
    return Reversal("", move.expect, move.snapshot, move.ours) if move else None


async def undo(
    agent: AgentRecord, session: Session, *, force: bool = False, but: Sequence[str] = (), by: str = ""
) -> str:
    """Take the last turn back, also one that isn't over; returns what the user had said in it.

    The files that it changed become what they were before, except those in `but`. Raises DenizenError if there is
    nothing to undo, or if the user has changed the same files meanwhile and it isn't forced; then nothing changes.
    """
    first = _last_turn(session.entries)
    if first is None:
        raise DenizenError("There is nothing to undo.")
    before, said = session.entries[first - 1].id, _user_text(session.entries[first])
    if unfinished(session.entries) and span_of(session.entries).open:  # to tell its changes from later ones by others
        await _snapshot_now(agent.checkpoints, session)
    span = span_of(session.entries[first:])
    await take_back(agent.checkpoints, session, span, to=before, force=force, but=but, by=by)
    return said


async def undo_unchanged(agent: AgentRecord, session: Session, *, by: str) -> tuple[str, Sequence[str]]:
    """Take the last turn back, and its files but those that somebody changed since: what was said in it, and these.

    Done once for the message `by`. Raises DenizenError as `undo` does.
    """
    last = session.entries[-1]
    if isinstance(last, StateEntry) and last.name == UNDONE and (move := last.read(HeadMove)) and move.by == by:
        return "", move.but
    left = list[str]()
    while True:
        try:
            return await undo(agent, session, but=left, by=by), left
        except Conflict as why:
            if {*why.paths} <= {*left}:
                raise
            left += why.paths


async def redo(agent: AgentRecord, session: Session, *, force: bool = False) -> str:
    """Take the last undo back; returns what the user had said. Raises DenizenError as `undo` does."""
    last = session.entries[-1] if session.entries else None
    move = last.read(HeadMove) if isinstance(last, StateEntry) and last.name == UNDONE else None
    if move is None:
        raise DenizenError("There is nothing to redo: nothing was undone, or something was said since.")
    with _with_force_hint():
        await _carry_out(agent.checkpoints, session, move, force=force)
    first = _last_turn(session.entries)
    return "" if first is None else _user_text(session.entries[first])


async def take_back(
    checkpoints: Checkpoints | None,
    session: Session,
    done: CheckpointSpan,
    *,
    to: str,
    told: str = "",
    force: bool = False,
    but: Sequence[str] = (),
    by: str = "",
) -> None:
    """Undo what was done to files but those in `but`, move the head to the entry `to`, and tell the model where there
    is something to be `told`; `redo` takes it back. Raises DenizenError as `undo` does.
    """
    with _with_force_hint():
        if not done.ours:
            move = HeadMove(to, told=told, back=HeadMove(session.head, by=by))
        else:
            kept = _required(checkpoints)
            if not (force or but):  # what is left out was in conflict
                await kept.ours_alone(done)
            back = HeadMove(session.head, await kept.snapshot(), done.first, done.ours, but=but, by=by)
            move = HeadMove(to, done.first, done.last, done.ours, told, back, but)
        await _carry_out(checkpoints, session, move, force=force)


async def return_to(checkpoints: Checkpoints, session: Session, snapshot: str) -> str:
    """Make the files those of a snapshot, and the conversation what it was then; `redo` takes it back.

    Returns the snapshot of what the files were until now. Raises DenizenError if the session made no such
    checkpoint on its move to its head.
    """
    to = _entry_at(session.entries, snapshot)
    if not to:
        raise DenizenError(f"Session {session.key} made no checkpoint {snapshot[:10]} on its way here.")
    before = await checkpoints.snapshot()
    await _carry_out(
        checkpoints, session, HeadMove(to, snapshot, back=HeadMove(session.head, before, snapshot)), force=True
    )
    return before


async def finish_undo(checkpoints: Checkpoints | None, session: Session) -> None:
    """Finish what a crash left half done. What the user has changed since is not overwritten: then it is given up.

    Raises DenizenError, once, if it is given up: the conversation stays, and opening the session again succeeds.
    """
    last = session.entries[-1] if session.entries else None
    if isinstance(last, CheckpointEntry) and last.label == BEFORE and not unfinished(session.entries):
        with suppress(DenizenError):  # otherwise these changes count as the user's
            await _snapshot_now(checkpoints, session)  # the changes of a copy were being applied
    move = last.read(HeadMove) if isinstance(last, StateEntry) and last.name == UNDO_INTENT else None
    if last is None or move is None:
        return
    try:
        await _apply(checkpoints, session, move)
    except SessionError:
        raise
    except DenizenError as why:
        await session.move_head(last.parent)
        raise DenizenError(
            f"An undo was cut off, and can't be finished: {why} The conversation stays as it was; open it again."
        ) from why


@contextmanager
def _with_force_hint() -> Generator[None]:
    """Adds to a Conflict how the person can force it."""
    try:
        yield
    except Conflict as why:
        raise Conflict(why.paths, "force it (in a chat: /undo force, /redo force)") from why


async def _carry_out(checkpoints: Checkpoints | None, session: Session, move: HeadMove, *, force: bool) -> None:
    if move.snapshot:
        _required(checkpoints)
    stays = session.head
    move = msgspec.structs.replace(move, expect="") if force else move
    await session.append(StateEntry(name=UNDO_INTENT, value=msgspec.to_builtins(move)))
    try:
        await _apply(checkpoints, session, move)
    except SessionError:
        raise
    except DenizenError:
        await session.move_head(stays)
        raise
    except asyncio.CancelledError:
        await _apply(checkpoints, session, move)  # half of it is nothing that anybody wants
        raise


async def _apply(checkpoints: Checkpoints | None, session: Session, move: HeadMove) -> None:
    if move.snapshot:
        kept = _required(checkpoints)
        ours = {*await kept.touched(move.ours)}
        if not move.but or ours - {*move.but}:
            await kept.restore(move.snapshot, expect=move.expect, only=ours - {*move.but})
    await session.move_head(move.to)
    if move.told:
        await session.append(SystemEntry(text=move.told))
    if move.back:
        await session.append(StateEntry(name=UNDONE, value=msgspec.to_builtins(move.back)))


async def _snapshot_now(checkpoints: Checkpoints | None, session: Session) -> None:
    if checkpoints:
        await session.append(CheckpointEntry(snapshot=await checkpoints.snapshot(), label=AFTER))


def _required(checkpoints: Checkpoints | None) -> Checkpoints:
    if checkpoints is None:
        raise DenizenError("This agent keeps no checkpoints, so the files of that turn can't be brought back.")
    return checkpoints


def _last_turn(entries: Sequence[AnyEntry]) -> int | None:
    """Where the last turn begins: at the message that opened it."""
    first, ended = None, unfinished(entries)
    for at in range(len(entries) - 1, -1, -1):
        entry = entries[at]
        if isinstance(entry, EndEntry):
            if first is not None:
                return first
            ended = True
        elif isinstance(entry, UserEntry) and ended:
            first = at
    return first


def _entry_at(entries: Sequence[AnyEntry], snapshot: str) -> str:
    """The entry where the conversation stood while the files were as in a snapshot: the end of a turn where there is
    one, else the latest step; what was kept before calls belongs before the reply that asks for them.
    """
    there, ended, found = False, False, ""
    reply: AnyEntry | None = None
    for entry in entries:
        match entry:
            case CheckpointEntry(snapshot=kept) if kept != snapshot:
                there = ended = False
            case ToolEntry(message=ToolResult(details={"checkpoint": kept})) if kept == snapshot:
                there, found = True, entry.id
            case CheckpointEntry(label=label) if not ended:
                there, found = True, reply.parent if reply and label == BEFORE else entry.id
            case AssistantEntry():
                reply = entry
            case EndEntry() if there:
                ended, found = True, entry.id
    return found


def _user_text(entry: AnyEntry) -> str:
    return entry.message.text if isinstance(entry, UserEntry) else ""
