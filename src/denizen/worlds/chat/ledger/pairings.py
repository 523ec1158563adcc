"""Pairings in the ledger: senders with an open code, and approved ones."""

import secrets

import msgspec

from denizen.ports import InboundMessage, OutboundMessage
from denizen.sessions.key import bounded
from denizen.worlds.chat.ledger.ledger import LedgerConnection
from denizen.worlds.chat.ledger.outbound import add_outbound
from denizen.worlds.chat.ledger.questions import MAX_ID_CHARS

CODE_LIFETIME_S = 3600.0
"""Seconds after which a code expires."""
MAX_OPEN_CODES, MAX_OPEN_CODES_PER_CHANNEL = 6, 3
"""Limits on open codes, so that strangers can't make the gateway send many messages."""
_LETTERS, _CODE_CHARS = "ABCDEFGHJKMNPQRTUVWXY", 6
"""Only letters that can't be confused with others or with digits."""
_COLUMNS = "channel, sender, chat, session_key, code, asked_at, approved_at"


class Pairing(msgspec.Struct, frozen=True):
    """A sender with the code that an owner approves. Times are seconds since the epoch.

    `approved_at` is 0 until the code is approved.
    """

    channel: str
    sender: str
    chat: str
    session_key: str
    code: str
    asked_at: float
    approved_at: float = 0.0


def is_paired(db: LedgerConnection, channel: str, sender: str) -> bool:
    """Whether the sender was approved."""
    found = db.execute(
        "SELECT 1 FROM pairings WHERE channel = ? AND sender = ? AND approved_at > 0",
        [channel, bounded(sender, MAX_ID_CHARS)],
    )
    return found.fetchone() is not None


def may_request_code(db: LedgerConnection, channel: str, sender: str, now: float) -> bool:
    """Whether the sender may get a code: they have none, and few others do."""
    pending = [each for each in pairings(db, now) if not each.approved_at]
    here = [each.sender for each in pending if each.channel == channel]
    is_known = bounded(sender, MAX_ID_CHARS) in here
    return not is_known and len(pending) < MAX_OPEN_CODES and len(here) < MAX_OPEN_CODES_PER_CHANNEL


def request_code(db: LedgerConnection, message: InboundMessage, now: float) -> bool:
    """Create a code for a message's sender, and send it to the chat; False if they or too many others have one."""
    if not may_request_code(db, message.channel, message.sender, now):
        return False
    db.execute("DELETE FROM pairings WHERE approved_at = 0 AND asked_at <= ?", [now - CODE_LIFETIME_S])
    code = "".join(secrets.choice(_LETTERS) for _ in range(_CODE_CHARS))
    sender = bounded(message.sender, MAX_ID_CHARS)
    added = db.execute(
        f"INSERT INTO pairings ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, 0) "  # noqa: S608 (ours)
        "ON CONFLICT DO NOTHING RETURNING 1",
        [message.channel, sender, message.chat, message.session_key, code, now],
    )
    if not added.fetchone():
        return False
    text = (
        f"I don't know you yet, so I can't answer. Your pairing code is {code}: give it to my owner within an hour. "
        f"They approve it with /pair {code} in one of their chats, or with: denizen pair approve {code}"
    )
    _send(db, Pairing(message.channel, sender, message.chat, message.session_key, code, now), text, "code")
    return True


def approve(db: LedgerConnection, code: str, now: float) -> Pairing | None:
    """Approve the sender with this code, and greet them; None if the code isn't open."""
    row = db.execute(
        "UPDATE pairings SET approved_at = ? WHERE code = ? AND approved_at = 0 AND asked_at > ? "  # noqa: S608 (ours)
        f"RETURNING {_COLUMNS}",
        [now, code.strip().upper(), now - CODE_LIFETIME_S],
    ).fetchone()
    if row is None:
        return None
    paired = Pairing(*row)
    _send(db, paired, "You're paired: I can read your messages from now on. /help lists the commands.", "greeting")
    return paired


def revoke(db: LedgerConnection, who: str) -> bool:
    """Remove a sender's pairing (`channel:sender`); False if there is none."""
    channel, _, sender = who.strip().partition(":")
    gone = db.execute(
        "DELETE FROM pairings WHERE channel = ? AND sender = ? RETURNING 1", [channel, bounded(sender, MAX_ID_CHARS)]
    )
    return gone.fetchone() is not None


def pairings(db: LedgerConnection, now: float) -> list[Pairing]:
    """Paired senders, and those with an open code, oldest first."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM pairings WHERE approved_at > 0 OR asked_at > ? "  # noqa: S608 (ours)
        "ORDER BY asked_at, channel, sender",
        [now - CODE_LIFETIME_S],
    )
    return [Pairing(*row) for row in rows.fetchall()]


def _send(db: LedgerConnection, to: Pairing, text: str, name: str) -> None:
    sent = OutboundMessage(to.channel, to.chat, text, to.session_key, id=f"pairing:{to.code}:{to.asked_at}:{name}")
    add_outbound(db, sent)
