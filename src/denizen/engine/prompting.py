"""The system prompt of a session: made once, kept in its transcript, so that it stays the same byte by byte."""

import msgspec

from denizen.engine.session_state import PROMPT, Prompt
from denizen.engine.turn import Turn
from denizen.entries import SessionEntry, StateEntry


async def renew_prompt(turn: Turn) -> None:
    """Make the session's prompt where it has none, was made for something else, or the context was compacted."""
    agent = turn.agent
    made_for = [agent.clock.now().date().isoformat(), *agent.prompt.made_for]
    if turn.state.prompt_for == made_for:
        return
    header = turn.session.entries[0] if turn.session.entries else None
    began = header.at if isinstance(header, SessionEntry) and header.at else agent.clock.now()
    made = agent.prompt.build(began)
    for notice in made.notices:
        turn.notice(notice, warning=True)
    prompt = Prompt(agent.redact(made.text), made_for, agent.actions.name, made.private, made.untrusted)
    await turn.append(StateEntry(name=PROMPT, value=msgspec.to_builtins(prompt)))
