"""Making a session's context smaller because the person asks for it."""

import functools

from denizen.engine.agent import Agent
from denizen.engine.ask import ask_aside
from denizen.engine.turn import Turn, TurnOver
from denizen.errors import DenizenError
from denizen.events import Compacted
from denizen.ports import Session, TurnIO


async def compact(agent: Agent, session: Session, io: TurnIO) -> bool:
    """Put a summary in place of all but the last messages (seed 003, "Level 1"); False where there is too little.

    Raises DenizenError when the model can't summarise, or its budget is spent: the context then stays as it is.
    """
    turn = Turn(agent, session, io, stream=False, feed=agent.feed(session))
    try:
        entry = await turn.feed.context.relieve(turn.view(), 1, functools.partial(ask_aside, turn))
    except TurnOver as over:
        raise DenizenError(over.note) from None
    if entry is None:
        return False
    if not entry.summary:
        raise DenizenError(f"{agent.model.name} could not summarise the conversation; it stays as it is.")
    await turn.append(entry)
    turn.emit(Compacted(entry.old_count, entry.new_count))
    return True
