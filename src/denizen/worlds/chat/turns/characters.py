"""Instructs running characters of text worlds from a chat: `/in NAME words`."""

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec

from denizen.engine.record import AgentRecord
from denizen.ports import InboundMessage, OutboundMessage
from denizen.runtime.cancellation import first_completed
from denizen.runtime.clock import Clock
from denizen.sessions import SessionKey
from denizen.sessions.key import bounded
from denizen.sessions.request_socket import (
    AnswerLost,
    SessionNotRunning,
    SessionRequest,
    send_request,
    sessions_named,
    sessions_of,
)
from denizen.worlds.chat.ledger import outbound
from denizen.worlds.chat.ledger.ledger import KEPT_IN
from denizen.worlds.chat.turns import commands
from denizen.worlds.commands import split_command

ANSWER_TIMEOUT_S = 600.0
_MAX_NAME_CHARS = 80


def in_own_session(message: InboundMessage) -> InboundMessage:
    """The message in a session of its own, so the chat's turns don't wait for the character."""
    key, name = SessionKey.parse(message.session_key), _name_and_words(message)[0]
    own = replace(key, peer=f"{key.peer}~in {bounded(name, _MAX_NAME_CHARS)}")
    metadata = {**message.metadata, KEPT_IN: message.session_key}
    return msgspec.structs.replace(message, session_key=str(own), metadata=metadata)


def is_instruction(message: InboundMessage) -> bool:
    """Whether the message is for a character."""
    return commands.QUEUED in message.metadata and split_command(message.content)[0] == "in"


async def reply_of_character(agent: AgentRecord, message: InboundMessage) -> OutboundMessage:
    """The character's answer to its operator's instruction, or why there is none.

    If the turn runs again, the answer is the same: the character isn't instructed twice.
    """
    words = await _ask(agent.home, message, agent.clock)
    in_chat = msgspec.structs.replace(message, session_key=message.metadata[KEPT_IN])
    return outbound.reply_to(in_chat, agent.redact(words))


async def _ask(home: Path, message: InboundMessage, clock: Clock) -> str:
    name, words = _name_and_words(message)
    found = await asyncio.to_thread(sessions_named, home, "moo", name)
    if not found:
        names = (
            ", ".join(sorted({key.agent for key in sessions_of(home, "moo")}))
            or "none has run yet; denizen moo run DIR"
        )
        return f"No character is called {name or 'that'}. Characters: {names}."
    if not words:
        return f"Add an instruction or a question for {name}: /in {name} what are you doing?"
    if len(found) > 1:
        return f"{len(found)} characters are called {name}. Say which: {', '.join(key.account for key in found)}"
    request = SessionRequest(f"{message.channel}:{message.id}", words)
    asking = send_request(home, str(found[0]), request)
    async with first_completed(asking, clock.sleep(ANSWER_TIMEOUT_S)) as (asked, _):
        if not asked.done():
            minutes = ANSWER_TIMEOUT_S / 60
            return f"{name} has the instruction, but hasn't answered for {minutes:g} minutes. It may still follow it."
        try:
            return f"{name}: {asked.result()}"
        except SessionNotRunning:
            return f"{name} isn't running. Start it: denizen moo run DIR"
        except AnswerLost:
            return f"{name} stopped before it answered. It may have followed the instruction; it won't get it again."


def _name_and_words(message: InboundMessage) -> tuple[str, str]:
    name, *words = split_command(message.content)[1].split(maxsplit=1) or [""]
    return name.lower(), "".join(words)
