"""The ledger's outbox and its statements."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from denizen.config.redact import whole_characters
from denizen.ports import Answer, Control, InboundMessage, OutboundMessage
from denizen.sessions import SessionKey
from denizen.sessions.key import bounded
from denizen.worlds.chat.ledger.ledger import (
    IN_SIGHT,
    KEPT_IN,
    ORIGIN,
    SYSTEM,
    LedgerConnection,
    background,
    control,
    put,
    to_json,
)
from denizen.worlds.chat.ledger.questions import CALL, MAX_ID_CHARS, with_word
from denizen.worlds.chat.ledger.reply_options import ReplyOptions

OutboxState = Literal["pending", "sending", "sent", "failed", "unknown", "kept"]
"""A `kept` message isn't sent: the program that asked reads it here."""

POLLED = frozenset({"http", "cli"})
"""Channels whose clients fetch replies from the outbox: nothing has to be sent."""

ALSO = "also_in_reply_to"
"""The metadata key of the other messages that a reply answers, which arrived during its turn."""


class OutboxRow(NamedTuple):
    """A row of the outbox.

    `parts` of the message were sent, the last one as `native_id`. `reason` says why it failed, or why a part may not
    have been sent. `waits_since` is when its channel first got the current part (seconds since the epoch; 0: never).
    """

    seq: int
    message: OutboundMessage
    state: OutboxState
    reason: str
    parts: int = 0
    native_id: str = ""
    waits_since: float = 0.0


def add_outbound(db: LedgerConnection, message: OutboundMessage, state: OutboxState | None = None) -> None:
    """Add a message after the earlier ones of its chat, unless there is one with its id.

    Its default state is `pending`; on a `POLLED` channel `sent`; if it isn't for sending and replaces no preview,
    `kept`.

    A message with an `ORIGIN` is also written into the chat's session, ahead of the person's answer.
    """
    is_kept = not message.send and not _preview(db, message)
    state = state or ("kept" if is_kept else "sent" if message.channel in POLLED else "pending")
    if origin := message.metadata.get(ORIGIN):
        key = message.metadata.get(KEPT_IN) or session_of_chat(db, message.channel, message.chat)
        message = replace(message, metadata={**message.metadata, KEPT_IN: key})
    if CALL in message.metadata:
        message = with_word(db, message)
    chat = bounded(message.chat, MAX_ID_CHARS)
    is_kept_elsewhere = bool(origin) and state != "kept" and message.metadata[KEPT_IN] != message.session_key
    is_new = _insert(db, message, chat, state)
    if is_kept_elsewhere and is_new:
        text = "\n".join((f"You sent this here, from {origin}:", message.content, *message.media))
        key, same_id = message.metadata[KEPT_IN], f"{message.channel}:{message.id}"
        seen = {name: traits for name, traits in message.metadata.items() if name == IN_SIGHT}
        put(db, InboundMessage(SYSTEM, message.chat, origin, text, key, metadata=seen, id=same_id))


def _insert(db: LedgerConnection, message: OutboundMessage, chat: str, state: OutboxState) -> bool:
    """Insert a message; False if there is one with its id."""
    while True:  # as another transaction may take the number
        added = db.execute(
            "INSERT INTO outbox (channel, chat, seq, id, message, state) "
            "SELECT ?, ?, COALESCE(MAX(seq), 0) + 1, ?, ?, ? FROM outbox WHERE channel = ? AND chat = ? "
            "ON CONFLICT DO NOTHING RETURNING seq",
            [message.channel, chat, message.id, to_json(message), state, message.channel, chat],
        )
        if added.fetchone():
            db.notify("outbox", msgspec.json.encode([message.channel, chat]).decode())
            return True
        same = db.execute("SELECT 1 FROM outbox WHERE channel = ? AND id = ?", [message.channel, message.id])
        if same.fetchone():
            return False


def session_of_chat(db: LedgerConnection, channel: str, chat: str) -> str:
    """The session of a chat: that of the last message sent to it, else the default for its name."""
    row = db.execute(
        "SELECT message FROM outbox WHERE channel = ? AND chat = ? AND state <> 'kept' ORDER BY seq DESC LIMIT 1",
        [channel, bounded(chat, MAX_ID_CHARS)],
    ).fetchone()
    sent = _outbound(row[0]) if row else None
    key = sent.metadata.get(KEPT_IN) or sent.session_key if sent else ""
    return key or str(SessionKey.of_chat(chat, channel))


def reply_id(message_id: str) -> str:
    """The id of the reply to a message; a reply that is written twice is one row."""
    return f"{message_id}:reply"


def reply_to(message: InboundMessage, text: str, heard: Sequence[str] = ()) -> OutboundMessage:
    """The reply to a message, and to the messages of these ids that its turn has `heard`."""
    metadata = {name: message.metadata[name] for name in (ORIGIN, KEPT_IN, IN_SIGHT) if name in message.metadata}
    if also := [each for each in heard if each != message.id]:
        metadata[ALSO] = also
    return OutboundMessage(
        *(message.channel, message.chat, text, message.session_key, message.id),
        metadata=metadata,
        id=reply_id(message.id),
        send=ReplyOptions.of(message).send_response,
    )


def apology(message: InboundMessage, why: str) -> OutboundMessage:
    """The reply to a message that can't be answered."""
    return reply_to(message, f"I could not answer this message. {why}")


def replies(
    db: LedgerConnection, channel: str, chat: str, after: int, most: int, *, last: bool = False
) -> list[OutboxRow]:
    """The messages to a chat after number `after`: the first `most` of them, or the `last`."""
    rows = db.execute(
        "SELECT seq, message, state, reason FROM outbox WHERE channel = ? AND chat = ? "  # noqa: S608 (the order is ours)
        f"AND seq > ? AND state <> 'kept' ORDER BY seq {'DESC' if last else 'ASC'} LIMIT ?",
        [channel, bounded(chat, MAX_ID_CHARS), after, most],
    ).fetchall()
    return [OutboxRow(seq, _outbound(message), state, reason) for seq, message, state, reason in sorted(rows)]


def last_result(db: LedgerConnection, channel: str, run_id: str) -> str:
    """The result of a job's last run, whose id begins with `run_id`, in a line; empty if the ledger has none."""
    row = db.execute(
        "SELECT id, state, reason FROM inbox WHERE channel = ? AND (id > ? AND id < ? OR id > ? AND id < ?) "
        "ORDER BY seq DESC LIMIT 1",
        [channel, *(end for start in (run_id, continuation_id(run_id)) for end in (start, f"{start}~"))],
    ).fetchone()
    if row is None or row[1] != "done":
        return f"{row[1]}: {row[2]}".removesuffix(": ") if row else ""
    reply = db.execute(
        "SELECT message FROM outbox WHERE channel = ? AND id = ?", [channel, reply_id(row[0])]
    ).fetchone()
    return _outbound(reply[0]).content.strip().partition("\n")[0] if reply else "no reply"


def continuation_id(run_id: str) -> str:
    """The id, or its prefix, of the message that continues a run after its wake script."""
    return f"woken:{run_id}"


def unsent_chats(db: LedgerConnection) -> list[tuple[str, str]]:
    """The channels and chats with unsent messages; long ids of chats are `bounded`."""
    return db.execute("SELECT DISTINCT channel, chat FROM outbox WHERE state IN ('pending', 'sending')").fetchall()


def first_unsent(db: LedgerConnection, chats: Iterable[tuple[str, str]]) -> dict[tuple[str, str], OutboxRow]:
    """The first unsent message of each of these chats that has one."""
    found = dict[tuple[str, str], OutboxRow]()
    for channel, chat in chats:
        row = db.execute(
            "SELECT seq, message, state, reason, parts, native_id, waits_since FROM outbox "
            "WHERE channel = ? AND chat = ? AND state IN ('pending', 'sending') ORDER BY seq LIMIT 1",
            [channel, chat],
        ).fetchone()
        if row:
            found[channel, chat] = OutboxRow(row[0], _outbound(row[1]), *row[2:])
    return found


def unconfirmed(db: LedgerConnection, most: int) -> list[OutboxRow]:
    """The first messages whose delivery is still unknown."""
    rows = db.execute(
        "SELECT seq, message, state, reason FROM outbox WHERE state = 'unknown' ORDER BY channel, chat, seq LIMIT ?",
        [most],
    ).fetchall()
    return [OutboxRow(seq, _outbound(message), state, reason) for seq, message, state, reason in rows]


def begin_sending(db: LedgerConnection, row: OutboxRow) -> OutboxRow:
    """Record that a message is being sent. It replaces the preview of the message that it answers."""
    message = row.message
    if native_id := _preview(db, message):
        db.execute("UPDATE inbox SET preview = '' WHERE channel = ? AND id = ?", [message.channel, message.in_reply_to])
        message = replace(message, edits=native_id)
        texts = [to_json(message), message.channel, message.id]
        db.execute("UPDATE outbox SET message = ? WHERE channel = ? AND id = ?", texts)
    row = row._replace(message=message, state="sending")
    save_progress(db, row)
    return row


def keep_preview(db: LedgerConnection, message: InboundMessage, native_id: str) -> bool:
    """Record the preview of a message's reply. True if a kept reply will now be sent, to replace the preview."""
    db.execute("UPDATE inbox SET preview = ? WHERE channel = ? AND id = ?", [native_id, message.channel, message.id])
    sent = db.execute(
        "UPDATE outbox SET state = 'pending' WHERE channel = ? AND id = ? AND state = 'kept' RETURNING 1",
        [message.channel, reply_id(message.id)],
    )
    return sent.fetchone() is not None


def _preview(db: LedgerConnection, message: OutboundMessage) -> str:
    """The native id of the preview that a message replaces; empty if there is none in its chat."""
    row = db.execute(
        "SELECT message, preview FROM inbox WHERE channel = ? AND id = ? AND preview <> ''",
        [message.channel, message.in_reply_to],
    ).fetchone()
    return row[1] if row and msgspec.json.decode(row[0], type=InboundMessage).chat == message.chat else ""


def save_progress(db: LedgerConnection, row: OutboxRow) -> None:
    """Store a message's state and progress."""
    db.execute(
        "UPDATE outbox SET state = ?, reason = ?, parts = ?, native_id = ?, waits_since = ? "
        "WHERE channel = ? AND id = ?",
        [row.state, whole_characters(row.reason), *row[4:], row.message.channel, row.message.id],
    )


def put_command(
    db: LedgerConnection,
    message: InboundMessage,
    session_key: str,
    given: Control | None,
    otherwise: str,
    *,
    subagents: bool = False,
) -> bool:
    """Accept a command: a control for that session, without a turn of its own. False if it was accepted before.

    `subagents`: it stops those in the session's background, too. Where there is nothing to control, `otherwise` is its
    reply; an answer to another session, whose reply may go to another chat, is confirmed.
    """
    row = db.execute(
        "INSERT INTO inbox (channel, id, session_key, message, state) VALUES (?, ?, ?, ?, 'done') "
        "ON CONFLICT DO NOTHING RETURNING seq",
        [message.channel, message.id, message.session_key, to_json(message)],
    ).fetchone()
    if row is None:
        return False
    stopped = [control(db, key, given) for key in background(db, session_key)] if given and subagents else []
    if not (given and control(db, session_key, given)):
        words = "Stopped." if stopped else otherwise
    elif isinstance(given, Answer) and session_key != message.session_key:
        words = "Approved." if given.allow else "Denied."
    else:
        return True
    add_outbound(db, reply_to(message, words))
    return True


def outcome(db: LedgerConnection, message: InboundMessage) -> tuple[str, str]:
    """The state of a message, and its reply, which is empty if another message's reply answers it."""
    found = [message.channel, message.id]
    row = db.execute("SELECT state FROM inbox WHERE channel = ? AND id = ?", found).fetchone()
    reply = db.execute(
        "SELECT message FROM outbox WHERE channel = ? AND id = ?", [message.channel, reply_id(message.id)]
    ).fetchone()
    return row[0] if row else "", _outbound(reply[0]).content if reply else ""


def _outbound(text: str) -> OutboundMessage:
    return msgspec.json.decode(text, type=OutboundMessage)
