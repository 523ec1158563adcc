"""Commands in chats: every channel, `denizen send`, the API, and `denizen chat --gateway`."""

import asyncio
import dataclasses
from functools import partial
from typing import Any

from denizen.engine.callback_host import CallbackHost
from denizen.engine.compact import compact
from denizen.engine.next_request import ReadSession, next_request, parts_of
from denizen.engine.record import AgentRecord
from denizen.engine.session_state import MODEL, state_of
from denizen.engine.undo import undo_unchanged
from denizen.entries import StateEntry
from denizen.errors import ConfigError, DenizenError, SessionUnavailable, SessionUnknown
from denizen.ports import InboundMessage, Session
from denizen.ports.checkpoints import named
from denizen.runtime.cache import SharedCache
from denizen.sessions import SessionKey
from denizen.sessions.talks import start_new_talk
from denizen.trusted.pending_checks import run_pending_checks
from denizen.worlds.chat.ledger import ledger, questions
from denizen.worlds.chat.ledger.database import Database
from denizen.worlds.commands import context_text, help_text, split_command, unknown_command, usage_text, usages
from denizen.worlds.world import AgentHandle

OWNERS_IN_GROUPS = frozenset({"model", "compact", "undo"})
"""Commands that only the owner may use in groups."""
ENDS_PARKED = frozenset({"new", "undo"})
"""Commands that end a turn which waits for an answer."""
QUEUED = "denizen.command"
"""The key in the metadata of a command that waits for its turn."""
_MARKS = """
* in groups only for the owner
** owners only"""


def record_for(agent: AgentHandle, session: Session, states: SharedCache[Any] | None = None) -> AgentRecord:
    """The agent's record with the session's model, and maybe with other `states`. Raises ConfigError."""
    record = agent.record if states is None else dataclasses.replace(agent.record, states=states)
    model = state_of(record, session).model
    return dataclasses.replace(agent.record_with(model), states=record.states) if model else record


async def reply_at_once(
    agent: AgentHandle, database: Database, message: InboundMessage, *, is_owner: bool
) -> str | None:
    """The reply to a command that needs no turn; None: it waits for its turn."""
    name, words = split_command(message.content)
    key = message.session_key
    if name not in (known := usages("chats")):
        return unknown_command(name, known)
    if name in OWNERS_IN_GROUPS and not is_owner and SessionKey.parse(key).kind != "direct":
        return f"In a group only the owner may use /{name}."
    if name == "pair" or (name == "in" and not is_owner):
        return f"Only the owner may use /{name}."
    if name == "in":
        return None
    if name == "help":
        return help_text("chats") + _MARKS
    if name in {"new", "compact", "undo"} or (name == "model" and words):
        if name not in ENDS_PARKED and await database.read(partial(ledger.parked, session_key=key)):
            return f"A turn of this chat waits for an answer. Answer it or /stop it, then repeat /{name}."
        return None
    try:
        entries = await agent.record.store.read(key)
    except SessionUnknown:
        entries = ()
    try:
        record = record_for(agent, ReadSession(entries), SharedCache(1, 1))  # turns that run have states of their own
    except ConfigError as error:
        return str(error)
    if name == "model":
        return f"model {record.model.name}"
    if name == "status":
        return await _status(record, database, message)
    window = (await asyncio.to_thread(record.model.limits, key)).window
    parts = parts_of(next_request(record, entries), "") if entries else ()
    if name == "usage":
        return usage_text(entries, window, sum(part.tokens for part in parts))
    return context_text(parts, window)


async def carry_out(agent: AgentHandle, session: Session, message: InboundMessage) -> str:
    """Run a command whose turn has come; its reply. Raises SessionUnavailable.

    Checks that are pending in the home come first, as they do in a turn.
    """
    name, words = split_command(message.content)
    found = await asyncio.to_thread(run_pending_checks, agent.record.home, agent.record.environ)
    try:
        reply = await _carry_out(name, words, agent, session, message)
    except SessionUnavailable:
        raise
    except DenizenError as error:
        reply = str(error)
    return "\n".join(filter(None, [agent.record.redact(found), reply]))


async def _carry_out(name: str, words: str, agent: AgentHandle, session: Session, message: InboundMessage) -> str:
    match name:
        case "new":
            return await _start_new_talk(agent.record, session)
        case "model":
            record = agent.record_with(words)
            await session.append(StateEntry(name=MODEL, value=words))
            return f"model {record.model.name}"
        case "compact":
            done = await compact(record_for(agent, session), session, CallbackHost())
            return "A summary replaces the older messages." if done else "Nothing to compact."
        case _:
            said, left = await undo_unchanged(agent.record, session, by=message.id)
            stay = f"\nNot touched, because they changed since: {named(left)}" if left else ""
            return f"Undone: {' '.join(said.split())[:200]}".removesuffix(": ") + stay


async def _start_new_talk(record: AgentRecord, session: Session) -> str:
    model = state_of(record, session).model
    talk = await start_new_talk(session)
    if model and talk:
        await session.append(StateEntry(name=MODEL, value=model))
    return "Started afresh." + (f" The earlier conversation is kept as {talk.title!r}." if talk else "")


async def _status(record: AgentRecord, database: Database, message: InboundMessage) -> str:
    is_busy = await database.read(partial(ledger.is_busy, session_key=message.session_key))
    waiting = await database.read(partial(questions.open_questions, channel=message.channel, chat=message.chat))
    state = "busy" if is_busy else "idle"
    lines = [f"model: {record.model.name}", f"this chat: {state}"]
    return "\n".join([*lines, *(f"waits for an answer: {each.line}" for each in waiting)])
