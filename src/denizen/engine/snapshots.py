"""A checkpoint before an iteration's first call that could change files, and after its last."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from denizen.checkpoints import Conflict, Shadow
from denizen.engine.turn import Turn
from denizen.entries import AnyEntry, CheckpointEntry
from denizen.errors import DenizenError
from denizen.events import Notice
from denizen.ports import Session, Tool, Traits, TurnIO

if TYPE_CHECKING:
    from denizen.engine.agent import Agent

BEFORE = "before"
"""The label of the checkpoint before an iteration's first change."""
AFTER = "after"
"""The label of the one behind its last."""
CHANGES = Traits.WRITES | Traits.EXECUTES

Pair = tuple[str, str]
"""A snapshot and a later one."""


@dataclass(slots=True)
class Stretch:
    """A part of a session, as its checkpoints tell it: the `first` and the `last` snapshot, and between which of them
    the agent was at the files (`ours`), between which somebody else may have been (`theirs`).

    `open`: what the agent did since the last one is in no snapshot yet.
    """

    first: str = ""
    last: str = ""
    ours: list[Pair] = field(default_factory=list)
    theirs: list[Pair] = field(default_factory=list)
    open: bool = False


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


def stretch_of(entries: Iterable[AnyEntry], first: str = "") -> Stretch:
    """What checkpoints tell of these entries; `first` is a snapshot from before them."""
    found = Stretch(first, first)
    for entry in entries:
        if isinstance(entry, CheckpointEntry):
            between = found.theirs if entry.label == BEFORE and not found.open else found.ours
            between += [(found.last, entry.snapshot)] if found.last not in ("", entry.snapshot) else []
            found.first = found.first or entry.snapshot
            found.last, found.open = entry.snapshot, entry.label == BEFORE
    return found


async def ours_alone(checkpoints: Shadow, done: Stretch) -> set[str]:
    """The paths that the agent changed. Raises Conflict where somebody else changed one of them meanwhile."""
    ours = await checkpoints.touched(done.ours)
    if both := ours & await checkpoints.touched(done.theirs):
        raise Conflict(sorted(both))
    return ours


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
