"""Taking the last turn back, and forward again: files and conversation together (design, "Undo")."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from denizen.engine.resume import unfinished
from denizen.entries import AnyEntry, CheckpointEntry, EndEntry, StateEntry, UserEntry
from denizen.errors import DenizenError, SessionError
from denizen.ports import Session

if TYPE_CHECKING:
    from denizen.engine.agent import Agent

INTENDED = "undo"
"""The state entry that says what an undo, or a redo, is about to do: a crash then doesn't leave it half done."""

UNDONE = "undone"
"""The state entry that says how to take an undo back."""


async def undo(agent: "Agent", session: Session, *, force: bool = False) -> str:
    """Take the last turn back; returns what the user had said in it.

    The files become what they were before its first call that could change them. Raises DenizenError where there is
    nothing to undo, or the user has changed files since and it isn't forced; then everything stays as it is.
    """
    entries = session.entries
    if unfinished(entries):
        raise DenizenError("The last turn isn't over: let it end, or stop it, before it is undone.")
    first = _last_turn(entries)
    if first is None:
        raise DenizenError("There is nothing to undo.")
    before = next((entry.snapshot for entry in entries[first:] if isinstance(entry, CheckpointEntry)), "")
    way = {"to": entries[first - 1].id, "snapshot": before, "expect": _snapshot(entries)}
    back = {"to": session.head, "snapshot": "", "expect": before}
    if before and agent.checkpoints:
        back["snapshot"] = await agent.checkpoints.snapshot()
    await _go(agent, session, way, force=force)
    await session.append(StateEntry(name=UNDONE, value=back))
    return _said(entries[first])


async def redo(agent: "Agent", session: Session, *, force: bool = False) -> str:
    """Take the last undo back; returns what the user had said. Raises DenizenError as `undo` does."""
    last = session.entries[-1] if session.entries else None
    if not isinstance(last, StateEntry) or last.name != UNDONE:
        raise DenizenError("There is nothing to redo: nothing was undone, or something was said since.")
    await _go(agent, session, last.value, force=force)
    first = _last_turn(session.entries)
    return "" if first is None else _said(session.entries[first])


async def finish_undo(agent: "Agent", session: Session) -> None:
    """Finish what a crash left half done."""
    last = session.entries[-1] if session.entries else None
    if isinstance(last, StateEntry) and last.name == INTENDED:
        await _arrive(agent, session, last.value, force=True)


async def _go(agent: "Agent", session: Session, way: dict[str, Any], *, force: bool) -> None:
    stays = session.head
    if way["snapshot"] and not agent.checkpoints:
        raise DenizenError("This agent keeps no checkpoints, so the files of that turn can't be brought back.")
    await session.append(StateEntry(name=INTENDED, value=way))
    try:
        await _arrive(agent, session, way, force=force)
    except SessionError:
        raise
    except DenizenError:
        await session.move_head(stays)
        raise


async def _arrive(agent: "Agent", session: Session, way: dict[str, Any], *, force: bool) -> None:
    if way["snapshot"] and agent.checkpoints:
        await agent.checkpoints.restore(way["snapshot"], expect=way["expect"], force=force)
    await session.move_head(way["to"])


def _last_turn(entries: Sequence[AnyEntry]) -> int | None:
    """Where the last turn begins: at the message that opened it."""
    first, ended = None, False
    for at in range(len(entries) - 1, -1, -1):
        entry = entries[at]
        if isinstance(entry, EndEntry):
            if first is not None:
                return first
            ended = True
        elif isinstance(entry, UserEntry) and ended:
            first = at
    return first


def _snapshot(entries: Sequence[AnyEntry]) -> str:
    return next((entry.snapshot for entry in reversed(entries) if isinstance(entry, CheckpointEntry)), "")


def _said(entry: AnyEntry) -> str:
    return entry.message.text if isinstance(entry, UserEntry) else ""
