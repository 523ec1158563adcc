"""The ledger's senders: who asked to speak with the agent, and who may."""

import secrets

import msgspec

from denizen.ports import InboundMessage, OutboundMessage
from denizen.sessions.key import bounded
from denizen.worlds.chat.ledger.ledger import LedgerConnection
from denizen.worlds.chat.ledger.outbound import add_outbound
from denizen.worlds.chat.ledger.questions import MAX_ID_CHARS

CODE_LIFE_S = 3600.0
"""Seconds after which a code expires."""
MAX_OPEN, MAX_OPEN_PER_CHANNEL = 6, 3
"""Codes that are open at the same time: strangers can't make the gateway send more."""
_LETTERS, _CODE_CHARS = "ABCDEFGHJKMNPQRTUVWXY", 6
"""Letters that nobody confuses with others or with digits."""
_COLUMNS = "channel, sender, chat, session_key, code, asked_at, approved_at"


class Pairing(msgspec.Struct, frozen=True):
    """A sender who asked to speak: the code that the owner approves, and when (seconds since the epoch).

    `approved_at` is 0 until then.
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


def may_ask(db: LedgerConnection, channel: str, sender: str, now: float) -> bool:
    """Whether the sender may get a code: has none, and few others have one."""
    pending = [each for each in pairings(db, now) if not each.approved_at]
    here = [each.sender for each in pending if each.channel == channel]
    is_known = bounded(sender, MAX_ID_CHARS) in here
    return not is_known and len(pending) < MAX_OPEN and len(here) < MAX_OPEN_PER_CHANNEL


def ask(db: LedgerConnection, message: InboundMessage, now: float) -> bool:
    """Give the sender of a message a code, and send it to the chat; False: they have one, or too many others do."""
    if not may_ask(db, message.channel, message.sender, now):
        return False
    db.execute("DELETE FROM pairings WHERE approved_at = 0 AND asked_at <= ?", [now - CODE_LIFE_S])
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
        f"They approve it with /pair {code} in a chat of theirs, or with: denizen pair approve {code}"
    )
    _send(db, Pairing(message.channel, sender, message.chat, message.session_key, code, now), text, "code")
    return True


def approve(db: LedgerConnection, code: str, now: float) -> Pairing | None:
    """Let the sender with this code speak, and greet them; None: no such code is open."""
    row = db.execute(
        "UPDATE pairings SET approved_at = ? WHERE code = ? AND approved_at = 0 AND asked_at > ? "  # noqa: S608 (ours)
        f"RETURNING {_COLUMNS}",
        [now, code.strip().upper(), now - CODE_LIFE_S],
    ).fetchone()
    if row is None:
        return None
    paired = Pairing(*row)
    _send(db, paired, "You're paired: I read what you write from now on. /help lists the commands.", "greeting")
    return paired


def revoke(db: LedgerConnection, who: str) -> bool:
    """Forget a sender, as `channel:sender`; False: there is no such pairing."""
    channel, _, sender = who.strip().partition(":")
    gone = db.execute(
        "DELETE FROM pairings WHERE channel = ? AND sender = ? RETURNING 1", [channel, bounded(sender, MAX_ID_CHARS)]
    )
    return gone.fetchone() is not None


def pairings(db: LedgerConnection, now: float) -> list[Pairing]:
    """Those who may speak, and those whose code is open, in the order in which they asked."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM pairings WHERE approved_at > 0 OR asked_at > ? "  # noqa: S608 (ours)
        "ORDER BY asked_at, channel, sender",
        [now - CODE_LIFE_S],
    )
    return [Pairing(*row) for row in rows.fetchall()]


def _send(db: LedgerConnection, to: Pairing, text: str, name: str) -> None:
    sent = OutboundMessage(to.channel, to.chat, text, to.session_key, id=f"pairing:{to.code}:{to.asked_at}:{name}")
    add_outbound(db, sent)
