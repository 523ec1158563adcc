"""Questions of all sessions, and senders waiting to be paired."""

from collections.abc import Sequence
from typing import Any

import msgspec
from aiohttp import web

from denizen.config.settings import Rule
from denizen.engine.next_request import ReadSession, WaitingCall, waiting_call
from denizen.engine.resume import question_of
from denizen.entries import AnyEntry, UserEntry
from denizen.errors import ConfigError, SessionError, SessionUnavailable, SessionUnknown
from denizen.ports import SessionInfo
from denizen.sessions import short_name
from denizen.sessions.index import title_of
from denizen.worlds.chat.gateway import Gateway
from denizen.worlds.chat.http.requests import GATEWAY, json_handler
from denizen.worlds.chat.ledger import questions
from denizen.worlds.chat.ledger.pairings import Pairing
from denizen.worlds.chat.ledger.questions import OpenQuestion
from denizen.worlds.chat.turns.commands import record_for
from denizen.worlds.world import check_host

_MAX_SESSIONS = 200
"""How many of the latest sessions are checked for questions of other hosts."""


class WaitingQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A call that waits for a yes or a no, and what is needed to decide.

    `how` says how to answer it elsewhere; empty if a control of its session answers it. `rule` is what `always`
    would write into the configuration. `word` answers it in the chat that was asked. Times are seconds since the
    epoch, 0 if unknown.
    """

    session_key: str
    title: str
    call_id: str
    question: str
    tool: str
    args: dict[str, Any]
    diff: str = ""
    is_quotation: bool = False
    rule: Rule | None = None
    channel: str = ""
    chat: str = ""
    word: str = ""
    asked_at: float = 0.0
    until: float = 0.0
    how: str = ""


class Waiting(msgspec.Struct, frozen=True):
    """Questions, the oldest first, and senders with an open pairing code."""

    questions: list[WaitingQuestion]
    pairings: list[Pairing]


async def get_waiting(request: web.Request) -> Waiting:
    """Everything that waits for a person, in chats and at terminals, with what would run and why it is asked."""
    gateway = request.app[GATEWAY]
    asked = {each.message.session_key: each for each in await gateway.database.read(questions.open_questions)}
    parked = [each for each in await gateway.agent.record.store.page(_MAX_SESSIONS) if each.stop_reason == "parked"]
    found = [await _question(gateway, key, each) for key, each in asked.items()]
    found += [await _question_elsewhere(gateway, each) for each in parked if each.key not in asked]
    waiting = sorted(filter(None, found), key=lambda each: each.asked_at)
    unpaired = [each for each in await gateway.access.pairings() if not each.approved_at]
    return Waiting(waiting, unpaired)


async def _question(gateway: Gateway, key: str, asked: OpenQuestion) -> WaitingQuestion | None:
    """A question that the gateway has asked in a chat."""
    try:
        entries = await gateway.agent.record.store.read(key)
    except SessionUnknown:
        return None
    try:
        record = record_for(gateway.agent, ReadSession(entries))
    except ConfigError:  # its model is gone
        record = gateway.agent.record
    call = await waiting_call(record, entries)
    message = asked.message
    at = float(message.metadata.get(questions.ASKED_AT, 0.0))
    if call is None:
        return None
    return _described(entries, key, call, channel=message.channel, chat=message.chat, word=asked.word, at=at)


async def _question_elsewhere(gateway: Gateway, info: SessionInfo) -> WaitingQuestion | None:
    """A question of another host's session, such as the terminal's."""
    try:
        entries = await gateway.agent.record.store.read(info.key)
        how = f"denizen answer {short_name(info.key)} yes"
        check_host(entries)
    except SessionUnavailable:
        raise
    except SessionUnknown:
        return None
    except SessionError as error:
        how = str(error)
    question = question_of(entries)
    return _described(entries, info.key, WaitingCall(question), at=info.updated, how=how) if question else None


def _described(entries: Sequence[AnyEntry], key: str, call: WaitingCall, *, at: float, **place: str) -> WaitingQuestion:
    titles = (title_of(entry.message) for entry in entries if isinstance(entry, UserEntry))
    return WaitingQuestion(
        session_key=key,
        title=next(filter(None, titles), ""),
        call_id=call.question.call_id,
        question=call.question.question,
        tool=call.question.name,
        args=call.question.args,
        diff=call.diff,
        is_quotation=call.is_quotation,
        rule=call.rule,
        asked_at=at,
        until=call.question.until.timestamp() if call.question.until else 0.0,
        **place,
    )


ROUTES = [web.get("/api/waiting", json_handler(get_waiting))]
