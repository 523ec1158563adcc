"""A checkpoint before an iteration's first call that could change files, and after its last."""

from typing import TYPE_CHECKING

from denizen.engine.turn import Turn
from denizen.entries import CheckpointEntry
from denizen.errors import DenizenError
from denizen.events import Notice
from denizen.ports import Session, Tool, Traits, TurnIO
from denizen.stretch import AFTER, BEFORE

if TYPE_CHECKING:
    from denizen.engine.agent import Agent

CHANGES = Traits.WRITES | Traits.EXECUTES


async def keep_before(turn: Turn, tool: Tool) -> None:
    """Keep what the workspace is, once in an iteration, before `tool` could change it."""
    if turn.agent.checkpoints and not turn.kept and tool.traits & CHANGES:
        turn.kept = True
        await _keep(turn, BEFORE)


async def keep_after(turn: Turn) -> None:
    """Keep what the calls made of the workspace, where there was one that could change it."""
    if turn.kept:
        turn.kept = False
        await _keep(turn, AFTER)


async def keep(agent: "Agent", session: Session, io: TurnIO, label: str) -> None:
    """Keep what the workspace is; where that isn't possible, the user is told, and work goes on."""
    if agent.checkpoints is None:
        return
    try:
        snapshot = await agent.checkpoints.snapshot()
    except DenizenError as why:
        io.emit(Notice(agent.redact(f"No checkpoint could be made, so this can't be undone: {why}"), "warning"))
        return
    await session.append(CheckpointEntry(snapshot=snapshot, label=label))


async def _keep(turn: Turn, label: str) -> None:
    await keep(turn.agent, turn.session, turn.io, label)
    turn.feed.read_on(turn.session.entries)
