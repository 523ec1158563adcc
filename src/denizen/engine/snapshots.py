"""The workspace around calls: checkpoints before and after, and checks that a killed process left.

There is a checkpoint before an iteration's first call that could change files, and after its last.
"""

import asyncio

from denizen.engine.record import AgentRecord
from denizen.engine.turn import Turn
from denizen.entries import CheckpointEntry
from denizen.errors import DenizenError
from denizen.events import Notice
from denizen.ports import Session, Tool, Traits, TurnIO, save_files
from denizen.ports.checkpoints import AFTER, BEFORE
from denizen.trusted.pending_checks import has_pending_checks, run_pending_checks

CHANGES = Traits.WRITES | Traits.EXECUTES


async def snapshot_before(turn: Turn, tool: Tool) -> None:
    """Snapshot the workspace before `tool` can change it, once in an iteration."""
    if turn.agent.checkpoints and not turn.snapshotted and tool.traits & CHANGES:
        turn.snapshotted = True
        await _snapshot(turn, BEFORE)


async def snapshot_after(turn: Turn) -> None:
    """Snapshot the workspace after calls that could change it."""
    if turn.snapshotted:
        turn.snapshotted = False
        await save_files(turn.io, ())  # an editor may still be writing what the calls changed
        await _snapshot(turn, AFTER)


async def take_snapshot(agent: AgentRecord, session: Session, io: TurnIO, label: str) -> None:
    """Snapshot the workspace; if that fails, warn the user and go on."""
    if agent.checkpoints is None:
        return
    try:
        snapshot = await agent.checkpoints.snapshot()
    except DenizenError as why:
        io.emit(Notice(agent.redact(f"No checkpoint could be made, so this can't be undone: {why}"), "warning"))
        return
    await session.append(CheckpointEntry(snapshot=snapshot, label=label))


async def _snapshot(turn: Turn, label: str) -> None:
    await take_snapshot(turn.agent, turn.session, turn.io, label)
    turn.read_on()


async def check_workspace(turn: Turn) -> None:
    """Check what commands of a killed Denizen left, before anything else happens in the workspace."""
    agent = turn.agent
    if has_pending_checks(agent.home):
        warning = await asyncio.to_thread(run_pending_checks, agent.home, agent.environ)
        if warning:
            turn.notice(warning, warning=True)
