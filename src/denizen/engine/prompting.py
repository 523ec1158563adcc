"""What goes before the conversation: the system prompt of a session, made once, and what memory has for a task."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec

from denizen.engine.session_state import PROMPT, RECALLED, SessionPrompt
from denizen.engine.turn import Turn
from denizen.entries import SessionEntry, StateEntry
from denizen.errors import DenizenError
from denizen.ports import Fact


async def renew_prompt(turn: Turn, *, is_open: bool = False) -> None:
    """Make the session's prompt where it has none, was made for something else, or the context was compacted.

    Also where no cache holds it any more, or the host has started since; but not on a new day or for those while the
    turn `is_open`: then its calls go on with what they began with.
    """
    agent, state = turn.agent, turn.state
    made_for = [agent.now().date().isoformat(), *agent.prompt.made_for]
    if state.prompt_for and (made_for[1:] == state.prompt_for[1:] if is_open else not await _is_stale(turn, made_for)):
        return
    header = turn.session.entries[0] if turn.session.entries else None
    began = header.at if isinstance(header, SessionEntry) and header.at else agent.clock.now()
    made = await asyncio.to_thread(agent.prompt.build, began)  # it reads files, maybe a database
    text, quoted = agent.redact(made.text), [agent.redact(each) for each in made.quoted]
    if (text, made_for) == (state.prompt, state.prompt_for):
        return
    for notice in made.notices:
        turn.notice(notice, warning=True)
    prompt = SessionPrompt(text, made_for, agent.actions.name, made.private, made.untrusted, quoted)
    await turn.append(StateEntry(name=PROMPT, value=msgspec.to_builtins(prompt)))


async def _is_stale(turn: Turn, made_for: list[Any]) -> bool:
    agent, state = turn.agent, turn.state
    if state.prompt_for != made_for or state.prompt_used_at is None:
        return True
    await state.know_limits(agent.model, turn.session.key)
    cached_since = agent.clock.now() - timedelta(seconds=agent.model.limits(turn.session.key).cache_s)
    return state.prompt_used_at < max(cached_since, turn.options.prompt_since or cached_since)


async def recalled(turn: Turn, task: str, most: int = 5) -> list[str]:
    """The facts that fit a task best, a line each that says when and where it was kept.

    Untrusted ones are left out, so that they don't mark the task from its start: the model finds them by `recall`.
    A memory that can't be read is reported to the user, and the task goes on without it.
    """
    try:
        facts = await turn.agent.memory.recall(task, most) if task.strip() else []
    except DenizenError as error:
        turn.notice(f"Nothing is recalled. {error}", warning=True)
        return []
    return [_line(fact) for fact in facts if not fact.untrusted]


def _line(fact: Fact) -> str:
    day = f"{fact.at:%Y-%m-%d}" if fact.at else ""
    session = fact.source.rpartition(":")[2]
    return f"{fact.marked} ({', '.join(filter(None, [fact.context, day, session and f'from {session}', fact.id]))})"


async def inject_memories(turn: Turn, task: str) -> None:
    """Give the model what earlier sessions left that fits the task, where its profile wants that."""
    facts = await recalled(turn, task) if turn.agent.recalls else []
    if facts:
        await turn.append(StateEntry(name=RECALLED, value=facts))
