"""Finds and deletes a sender's data in the ledger."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from denizen.ports.queue import InboundMessage
from denizen.sessions import SessionKey
from denizen.sessions.key import bounded
from denizen.worlds.chat.ledger import ledger
from denizen.worlds.chat.ledger.ledger import LedgerConnection
from denizen.worlds.chat.ledger.questions import MAX_ID_CHARS


class PersonalData(NamedTuple):
    """The rows of a sender's messages, and their direct chats with sessions, received files and jobs with their runs.

    `groups` are the sessions of groups in which they wrote with others. `is_open`: a message isn't finished yet.
    """

    rows: set[int]
    chats: set[tuple[str, str]]
    sessions: set[str]
    media: set[str]
    jobs: set[str]
    groups: set[str]
    is_open: bool


def personal_data(db: LedgerConnection, senders: Iterable[tuple[str, str]]) -> PersonalData:
    """Find the data of these senders, given as channel and id."""
    rows, chats, is_open = set[int](), set[tuple[str, str]](), False
    sessions, media, groups = set[str](), set[str](), set[str]()
    for channel, sender in senders:
        bounded_sender = bounded(sender, MAX_ID_CHARS)
        inbox = db.execute("SELECT seq, state, message FROM inbox WHERE channel = ?", [channel])
        for seq, state, text in inbox.fetchall():
            message = msgspec.json.decode(text, type=InboundMessage)
            if message.sender not in {sender, bounded_sender}:
                continue
            rows.add(seq)
            media.update(message.media)
            is_open = is_open or state not in ledger.OVER
            if message.is_group:
                groups.add(message.session_key)
            else:
                chats.add((channel, bounded(message.chat, MAX_ID_CHARS)))
                sessions.add(message.session_key)
        paired = db.execute(
            "SELECT chat, session_key FROM pairings WHERE channel = ? AND sender = ?", [channel, bounded_sender]
        )
        for chat, session_key in paired.fetchall():
            chats.add((channel, bounded(chat, MAX_ID_CHARS)))
            sessions.add(session_key)
    jobs = [msgspec.json.decode(job, type=dict[str, object]) for job, _ in ledger.jobs(db)]
    theirs = {str(job["id"]) for job in jobs if (job["channel"], job["chat"]) in chats}
    sessions.update(str(SessionKey(name, channel="cron")) for job in theirs for name in (job, f"{job}.wake"))
    for seq, state, key in db.execute("SELECT seq, state, session_key FROM inbox").fetchall():
        if key.partition("~")[0] in sessions:  # runs of their jobs, and reports of subagents
            rows.add(seq)
            is_open = is_open or state not in ledger.OVER
    return PersonalData(rows, chats, sessions, media, theirs, groups, is_open)


def delete_personal_data(db: LedgerConnection, found: PersonalData, senders: Iterable[tuple[str, str]]) -> None:
    """Delete the data and the pairings. The messages must be finished."""
    for seq in found.rows:
        db.execute("DELETE FROM inbox WHERE seq = ?", [seq])
    for channel, chat in found.chats:
        db.execute("DELETE FROM outbox WHERE channel = ? AND chat = ?", [channel, chat])
    for channel, sender in senders:
        db.execute("DELETE FROM pairings WHERE channel = ? AND sender = ?", [channel, bounded(sender, MAX_ID_CHARS)])
    for job in found.jobs:
        ledger.remove_job(db, job)
