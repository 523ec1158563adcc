"""Making a session's context smaller because the person asks for it."""

import msgspec

from denizen.engine.ask import summary_entry
from denizen.engine.record import AgentRecord
from denizen.engine.resume import unfinished
from denizen.engine.turn import Turn, TurnOptions, TurnOver
from denizen.errors import DenizenError
from denizen.events import Compacted
from denizen.messages import Usage
from denizen.ports import Session, TurnIO


async def compact(agent: AgentRecord, session: Session, io: TurnIO) -> bool:
    """Put a summary in place of all but the last messages (seed 003, "Level 1"); False where there is too little.

    Raises DenizenError when a turn is under way, the model can't summarise, or its budget is spent; the context then
    stays as it is.
    """
    if unfinished(session.entries):
        raise DenizenError("The session's last turn isn't over: it waits for an answer, or was interrupted.")
    turn = Turn(agent, session, io, TurnOptions(stream=False))
    try:
        entry = await summary_entry(turn, 1)
    except TurnOver as over:
        raise DenizenError(over.note) from None
    if entry is None:
        return False
    if entry.unsummarised:
        raise DenizenError(f"{agent.model.name} could not summarise the conversation; it stays as it is.")
    await turn.append(msgspec.structs.replace(entry, usage=Usage()))  # it belongs to no turn
    turn.emit(Compacted(entry.old_count, entry.new_count))
    return True
