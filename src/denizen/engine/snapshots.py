"""A checkpoint before an iteration's first call that could change files, and after its last."""

from denizen.engine.turn import Turn
from denizen.entries import CheckpointEntry
from denizen.errors import DenizenError
from denizen.ports import Tool, Traits

BEFORE = "before"
"""The label of the checkpoint before an iteration's first change."""
CHANGES = Traits.WRITES | Traits.EXECUTES


async def keep_before(turn: Turn, tool: Tool) -> None:
    """Keep what the workspace is, once in an iteration, before `tool` could change it."""
    if not turn.kept and tool.traits & CHANGES and turn.agent.checkpoints:
        turn.kept = True
        await _keep(turn, label=BEFORE)


async def keep_after(turn: Turn) -> None:
    """Keep what the calls made of the workspace, where there was one that could change it."""
    if turn.kept:
        turn.kept = False
        await _keep(turn, label="after")


async def _keep(turn: Turn, label: str) -> None:
    checkpoints = turn.agent.checkpoints
    try:
        snapshot = await checkpoints.snapshot() if checkpoints else ""
    except DenizenError as why:
        turn.notice(f"No checkpoint could be made, so this can't be undone: {why}", warning=True)
        return
    await turn.append(CheckpointEntry(snapshot=snapshot, label=label))
