"""What precedes the conversation: the session's system prompt, made once, and memories for a task."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec

from denizen.engine.session_state import PROMPT, RECALLED, SessionPrompt
from denizen.engine.turn import Turn
from denizen.entries import SessionEntry, StateEntry
from denizen.errors import DenizenError
from denizen.ports import Fact

MAX_RECALLED = 5
"""Facts that a task begins with."""


async def renew_prompt(turn: Turn, *, is_open: bool = False) -> None:
    """Make the session's prompt if it has none, if its inputs changed, or after a compaction.

    Also if no cache holds it any more, on a new day, or if the host was restarted; but not while the turn `is_open`,
    whose calls go on with the prompt that they began with.
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


async def recalled(turn: Turn, task: str) -> list[str]:
    """The facts that fit a task best, a line each with date and source.

    Untrusted facts are left out, so that they don't mark the task from its start: the model finds them by `recall`.
    An unreadable memory is reported to the user, and the task goes on without it.
    """
    try:
        facts = await turn.agent.memory.recall(task, MAX_RECALLED) if task.strip() else []
    except DenizenError as error:
        turn.notice(f"Nothing is recalled. {error}", warning=True)
        return []
    return [_line(fact) for fact in facts if not fact.untrusted]


def _line(fact: Fact) -> str:
    day = f"{fact.at:%Y-%m-%d}" if fact.at else ""
    session = fact.source.rpartition(":")[2]
    return f"{fact.marked} ({', '.join(filter(None, [fact.context, day, session and f'from {session}', fact.id]))})"


async def inject_memories(turn: Turn, task: str) -> None:
    """Give the model the memories that fit the task, if its profile recalls."""
    facts = await recalled(turn, task) if turn.agent.recalls else []
    if facts:
        await turn.append(StateEntry(name=RECALLED, value=facts))
