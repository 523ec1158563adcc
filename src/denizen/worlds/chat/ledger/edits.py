"""A person's corrections of messages that they sent before, and messages that they take back."""

import msgspec

from denizen.ports import InboundMessage
from denizen.worlds.chat.ledger import ledger
from denizen.worlds.chat.ledger.ledger import Accepted, LedgerConnection
from denizen.worlds.chat.settings import WhenBusy
from denizen.worlds.commands import split_command

_QUOTED_CHARS = 80


def put(db: LedgerConnection, message: InboundMessage, when_busy: WhenBusy = "queue") -> Accepted:
    """Accept a message like `ledger.put`. An edit of a waiting message only replaces its text.

    If that message's turn has begun, the edit becomes a new message that quotes it. An edit that doesn't change the
    text isn't accepted.
    """
    if message.edit_of:
        key = ledger.accepted_key(db, message.channel, message.edit_of)
        corrected = _correct(db, message) if key else message
        if corrected is None:
            return ""
        message = corrected
    return ledger.put(db, message, when_busy)


def _correct(db: LedgerConnection, edit: InboundMessage) -> InboundMessage | None:
    """Update the original's text, and return the message to accept instead of the edit, if any."""
    seq, text = db.execute(
        "SELECT seq, message FROM inbox WHERE channel = ? AND id = ?", [edit.channel, edit.edit_of]
    ).fetchone()
    original = msgspec.json.decode(text, type=InboundMessage)
    if original.sender != edit.sender or split_command(original.content)[0]:
        return edit
    if original.content == edit.content:  # the service added a link preview, or delivers the edit again
        return None
    new = msgspec.structs.replace(original, content=edit.content, media=edit.media or original.media)
    db.execute("UPDATE inbox SET message = ? WHERE seq = ?", [ledger.to_json(new), seq])
    waits = db.execute(  # the running turn may have read one with a control
        "SELECT 1 FROM inbox WHERE seq = ? AND state IN ('ready', 'waiting') AND attempt = 0 "
        "AND NOT EXISTS (SELECT 1 FROM controls WHERE controls.message = inbox.seq)",
        [seq],
    ).fetchone()
    if waits:
        return None
    words = " ".join(original.content.split())
    quoted = words if len(words) <= _QUOTED_CHARS else f"{words[:_QUOTED_CHARS]}…"
    return msgspec.structs.replace(edit, content=f'Correction of my message "{quoted}": {edit.content}')


class QueuedMessage(msgspec.Struct, frozen=True):
    """A message that isn't over: its turn is `ready`, `running` or `parked`, or it is `waiting` behind others."""

    id: str
    channel: str
    chat: str
    sender: str
    content: str
    state: str


def queued(db: LedgerConnection, session_key: str) -> list[QueuedMessage]:
    """The messages of a session that aren't over, in order."""
    rows = db.execute(
        "SELECT message, state FROM inbox WHERE session_key = ? AND state IN ('ready', 'running', 'parked', 'waiting') "
        "ORDER BY seq",
        [session_key],
    ).fetchall()
    found = ((msgspec.json.decode(text, type=InboundMessage), state) for text, state in rows)
    return [QueuedMessage(each.id, each.channel, each.chat, each.sender, each.content, state) for each, state in found]


def change_waiting(db: LedgerConnection, session_key: str, message_id: str, content: str) -> bool:
    """Replace a waiting message's content, or take the message back if the new content is empty.

    Returns False if no waiting message has that id, a turn may have read it, or it is a command, which can't be edited.
    """
    ledger.follow(db, session_key)
    row = db.execute(
        "SELECT seq, message FROM inbox WHERE session_key = ? AND id = ? AND state = 'waiting' "
        "AND NOT EXISTS (SELECT 1 FROM controls WHERE controls.message = inbox.seq)",
        [session_key, message_id],
    ).fetchone()
    if row is None:
        return False
    original = msgspec.json.decode(row[1], type=InboundMessage)
    if content and split_command(original.content)[0]:
        return False
    message = msgspec.structs.replace(original, content=content)
    if content:
        db.execute("UPDATE inbox SET message = ? WHERE seq = ?", [ledger.to_json(message), row[0]])
    else:
        db.execute("UPDATE inbox SET state = 'done', reason = 'taken back' WHERE seq = ?", [row[0]])
    return True
