"""Compacting a session between turns, on request or in the background."""

import msgspec

from denizen.engine.ask import summary_entry
from denizen.engine.record import AgentRecord
from denizen.engine.resume import unfinished
from denizen.engine.turn import Turn, TurnOptions
from denizen.engine.turn_over import TurnOver
from denizen.entries import CompactionEntry
from denizen.errors import DenizenError
from denizen.events import Compacted
from denizen.messages import Usage
from denizen.ports import Session, TurnIO


async def compaction(agent: AgentRecord, session: Session, io: TurnIO) -> CompactionEntry | None:
    """The entry that puts a summary in place of all but the last messages (decisions, "Overflow"); None: too few.

    It can be made in the background from a session that was only read (`ReadSession`), and appended once the session
    is open again. A turn may have begun meanwhile, or the head have moved: the entry is ignored then unless it still
    covers what the model sees.

    Raises DenizenError if a turn is under way, the model can't summarise, or its budget is spent.
    """
    if unfinished(session.entries):
        raise DenizenError("The session's last turn isn't over: it waits for an answer, or was interrupted.")
    turn = Turn(agent, session, io, TurnOptions(stream=False))
    try:
        entry = await summary_entry(turn, 1)
    except TurnOver as over:
        raise DenizenError(over.note) from None
    finally:
        turn.controls.close()
    if entry and entry.unsummarised:
        raise DenizenError(f"{agent.model.name} could not summarise the conversation; it stays as it is.")
    return entry and msgspec.structs.replace(entry, usage=Usage())  # it belongs to no turn


async def compact(agent: AgentRecord, session: Session, io: TurnIO) -> bool:
    """Make the context smaller now; False if there is too little. Raises DenizenError as `compaction` does."""
    if entry := await compaction(agent, session, io):
        await session.append(entry)
        io.emit(Compacted(entry.old_count, entry.new_count))
    return entry is not None
