"""What goes before the conversation: the system prompt of a session, made once, and what memory has for a task."""

import asyncio

import msgspec

from denizen.engine.session_state import PROMPT, RECALLED, Prompt
from denizen.engine.turn import Turn
from denizen.entries import SessionEntry, StateEntry
from denizen.errors import DenizenError
from denizen.ports import Fact


async def renew_prompt(turn: Turn) -> None:
    """Make the session's prompt where it has none, was made for something else, or the context was compacted."""
    agent = turn.agent
    made_for = [agent.now().date().isoformat(), *agent.prompt.made_for]
    if turn.state.prompt_for == made_for:
        return
    header = turn.session.entries[0] if turn.session.entries else None
    began = header.at if isinstance(header, SessionEntry) and header.at else agent.clock.now()
    made = await asyncio.to_thread(agent.prompt.build, began)  # it reads files, maybe a database
    for notice in made.notices:
        turn.notice(notice, warning=True)
    text, quoted = agent.redact(made.text), [agent.redact(each) for each in made.quoted]
    prompt = Prompt(text, made_for, agent.actions.name, made.private, made.untrusted, quoted)
    await turn.append(StateEntry(name=PROMPT, value=msgspec.to_builtins(prompt)))


async def recalled(turn: Turn, task: str, most: int = 5) -> list[str]:
    """The facts that fit a task best, a line each that says when and where it was kept.

    A memory that can't be read is reported to the user, and the task goes on without it.
    """
    try:
        return [_line(fact) for fact in await turn.agent.memory.recall(task, most)] if task.strip() else []
    except DenizenError as error:
        turn.notice(f"Nothing is recalled. {error}", warning=True)
        return []


def _line(fact: Fact) -> str:
    day = f"{fact.at:%Y-%m-%d}" if fact.at else ""
    session = fact.source.rpartition(":")[2]
    return f"{fact.marked} ({', '.join(filter(None, [fact.context, day, session and f'from {session}', fact.id]))})"


async def inject_memories(turn: Turn, task: str) -> None:
    """Give the model what earlier sessions left that fits the task, where its profile wants that."""
    facts = await recalled(turn, task) if turn.agent.recalls else []
    if facts:
        await turn.append(StateEntry(name=RECALLED, value=facts))
