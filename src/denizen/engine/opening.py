"""Opening a session for writing, and leaving it."""

from contextlib import suppress

from denizen.engine.record import AgentRecord
from denizen.engine.undo import finish_undo
from denizen.errors import SessionError
from denizen.ports import Session


async def open_session(agent: AgentRecord, key: str) -> Session:
    """The session of that full key, open for writing, with what a crash left of an undo finished.

    Raises SessionError when another process has it.
    """
    session = await agent.store.open(key, workspace=str(agent.workspace), profile=agent.name)
    try:
        await finish_undo(agent.checkpoints, session)
    except BaseException:
        await session.close()
        raise
    return session


async def leave_session(agent: AgentRecord, session: Session) -> None:
    """Close a session; one that has nothing but its header isn't kept."""
    blank = len(session.entries) == 1 and not session.moved
    await session.close()
    if blank:
        with suppress(SessionError):  # another process has it by now
            await agent.store.remove(session.key)
