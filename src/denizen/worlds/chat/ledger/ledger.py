"""The ledger's tables and their statements: inbox, controls and cron jobs; `outbound` has those of the outbox.

Each function takes a connection inside a transaction. The SQL works on SQLite and PostgreSQL. Others may write at the
same time, and no lock is wider than a session: every change to a session first updates its head, which is its first
open message.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from denizen.config.redact import map_text, whole_characters
from denizen.ports import Answer, Control, FollowUp, InboundMessage, Interrupt, Steer, Stop
from denizen.sessions import SessionKey
from denizen.worlds.chat.ledger.reply_options import ReplyOptions
from denizen.worlds.chat.settings import WhenBusy

SCHEMA = """
CREATE TABLE inbox (
    seq {serial}, channel TEXT NOT NULL, id TEXT NOT NULL, session_key TEXT NOT NULL, message TEXT NOT NULL,
    state TEXT NOT NULL, due DOUBLE PRECISION NOT NULL DEFAULT 0, worker TEXT NOT NULL DEFAULT '',
    attempt INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0, deaths INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '', over_since DOUBLE PRECISION NOT NULL DEFAULT 0,
    UNIQUE (channel, id)
);
CREATE INDEX inbox_session ON inbox (session_key, state, seq);
CREATE INDEX inbox_due ON inbox (due) WHERE state IN ('ready', 'parked');
CREATE INDEX inbox_running ON inbox (worker) WHERE state = 'running';
CREATE TABLE controls (
    seq {serial}, session_key TEXT NOT NULL, kind TEXT NOT NULL, control TEXT NOT NULL, message BIGINT
);
CREATE TABLE outbox (
    channel TEXT NOT NULL, chat TEXT NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL, message TEXT NOT NULL,
    state TEXT NOT NULL, reason TEXT NOT NULL DEFAULT '', over_since DOUBLE PRECISION NOT NULL DEFAULT 0,
    PRIMARY KEY (channel, chat, seq), UNIQUE (channel, id)
);
CREATE INDEX outbox_unsent ON outbox (channel, chat, seq) WHERE state IN ('pending', 'sending');
CREATE TABLE cron (id TEXT PRIMARY KEY, job TEXT NOT NULL, due DOUBLE PRECISION);
"""
SCHEMA_2 = """
ALTER TABLE inbox ADD COLUMN followed INTEGER NOT NULL DEFAULT 0;
UPDATE inbox SET state = 'waiting' WHERE state IN ('ready', 'parked') AND EXISTS (
    SELECT 1 FROM inbox AS other WHERE other.session_key = inbox.session_key AND other.seq < inbox.seq
    AND other.state IN ('ready', 'running', 'parked')
);
UPDATE inbox SET followed = 1 WHERE state IN ('ready', 'running', 'parked');
DROP INDEX inbox_session;
CREATE INDEX inbox_session ON inbox (session_key, seq);
CREATE UNIQUE INDEX inbox_head ON inbox (session_key) WHERE state IN ('ready', 'running', 'parked');
CREATE INDEX inbox_waiting ON inbox (session_key, seq) WHERE state = 'waiting';
"""
SCHEMA_3 = """
ALTER TABLE inbox ADD COLUMN preview TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN parts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox ADD COLUMN native_id TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN waits_since DOUBLE PRECISION NOT NULL DEFAULT 0;
"""
SCHEMA_4 = """
CREATE TABLE pairings (
    channel TEXT NOT NULL, sender TEXT NOT NULL, chat TEXT NOT NULL, session_key TEXT NOT NULL, code TEXT NOT NULL,
    asked_at DOUBLE PRECISION NOT NULL, approved_at DOUBLE PRECISION NOT NULL DEFAULT 0, PRIMARY KEY (channel, sender)
);
"""
"""In the inbox, the first open message of a session is `ready`, `running` or `parked`, the others are `waiting`; those
that are over are `done` or `failed`. A head is `followed` once there are messages or controls after it. `due` is the
earliest time at which a `ready` or `parked` one may run, in seconds since the epoch. A control's `message` is the row
of the inbox that it was made from. `preview` is the native id of the reply's preview. In the outbox, `seq` rises in
each chat; `parts` were sent, the last one as `native_id`; `waits_since` is when the channel first got the current part.
`over_since` is when a clean-up first found that a row is over. A job of `cron` without `due` is disabled. A row
of `pairings` is a sender who got a code, approved at `approved_at` (0: not yet).
"""

Accepted = Literal["", "ready", "waiting"]
"""Empty: the message was accepted before. `ready`: its turn is next in its session; `waiting`: others come first."""

OVER = frozenset({"done", "failed"})
"""States of a message that is over."""

SYSTEM = "system"
"""The channel of messages that no person wrote: kept in their session, for its next turn to see."""

ORIGIN, KEPT_IN = "denizen.origin", "denizen.kept_in"
"""The metadata keys of the other session's turn that sent a message, and of the session of the chat it goes to."""

IN_SIGHT = "denizen.in_sight"
"""The metadata key of the traits of everything that turn had seen."""

_KINDS: dict[str, type[Control]] = {
    "answer": Answer,
    "stop": Stop,
    "steer": Steer,
    "follow_up": FollowUp,
    "interrupt": Interrupt,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


class LedgerConnection(Protocol):
    """A connection as the functions here need it."""

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        """Execute a statement; a cursor over its rows."""

    def ring(self, session_key: str, due: float) -> None:
        """Wake a worker for the session's turn, after the transaction and once the turn is due."""

    def notify(self, subject: str, text: str) -> None:
        """Notify other processes, after the transaction."""


class Claim(NamedTuple):
    """A message whose turn a worker has begun.

    `attempt`, `failures` and `deaths` count how often it began, failed, and died with its process.
    """

    worker: str
    seq: int
    message: InboundMessage
    attempt: int
    failures: int
    deaths: int
    followed: int = 0


class ArrivedControl(NamedTuple):
    """A control for a session's running turn; `message` is the row of the inbox that it was made from, if any."""

    seq: int
    session_key: str
    control: Control
    message: int | None


# The inbox


def put(db: LedgerConnection, message: InboundMessage, when_busy: WhenBusy = "queue") -> Accepted:
    """Accept a message, unless its channel's message with that id was accepted before."""
    key = message.session_key
    while (row := _insert(db, message)) is None:
        if accepted_key(db, message.channel, message.id):
            return ""
    seq, state = row
    if state == "ready":
        db.ring(key, 0.0)
        return "ready"
    while not (head := follow(db, key) or _promote(db, key)):
        pass  # another transaction has ended the turn that was open, and its next statement finds this one
    if when_busy != "queue" and ReplyOptions.of(_inbound(head)).send_response:
        control = (Steer if when_busy == "steer" else Interrupt)(message.content, message.id)
        _add_control(db, key, control, seq)
    return "waiting"


def _insert(db: LedgerConnection, message: InboundMessage) -> tuple[int, str] | None:
    """Insert a message; None if its id is taken, or its session has just got a head."""
    key = message.session_key
    return db.execute(  # one statement, as a server takes its time for each
        "INSERT INTO inbox (channel, id, session_key, message, state) VALUES (?, ?, ?, ?, "
        "CASE WHEN EXISTS (SELECT 1 FROM inbox WHERE session_key = ? AND state IN ('ready', 'running', 'parked')) "
        "THEN 'waiting' ELSE 'ready' END) ON CONFLICT DO NOTHING RETURNING seq, state",
        [message.channel, message.id, key, to_json(message), key],
    ).fetchone()


def follow(db: LedgerConnection, session_key: str) -> str:
    """Lock the session's head and mark it as followed; its message, or an empty string if there is no head."""
    head = db.execute(
        "UPDATE inbox SET followed = 1 WHERE session_key = ? AND state IN ('ready', 'running', 'parked') "
        "RETURNING message",
        [session_key],
    ).fetchone()
    return head[0] if head else ""


def _promote(db: LedgerConnection, session_key: str) -> str:
    """Make the first waiting message the head of a session without one; that message, or an empty string."""
    head = db.execute(
        "UPDATE inbox SET state = 'ready', followed = 1 WHERE seq = "
        "(SELECT MIN(seq) FROM inbox WHERE session_key = ? AND state = 'waiting') AND NOT EXISTS "
        "(SELECT 1 FROM inbox WHERE session_key = ? AND state IN ('ready', 'running', 'parked')) RETURNING message",
        [session_key, session_key],
    ).fetchone()
    if not head:
        return ""
    db.ring(session_key, 0.0)
    return head[0]


def put_run(db: LedgerConnection, message: InboundMessage, prefix: str) -> bool:
    """Accept a scheduled run, whose id is `prefix` and its time; False if it was accepted before.

    If later runs were accepted already, the clock was set back, and it runs again.
    """
    number, given = 1, message
    while not put(db, given):
        later = "SELECT 1 FROM inbox WHERE channel = ? AND id > ? AND id < ? LIMIT 1"
        if not db.execute(later, [message.channel, message.id, f"{prefix}~"]).fetchone():
            return False
        number += 1
        given = msgspec.structs.replace(message, id=f"{message.id}#{number}")
    return True


def put_few(db: LedgerConnection, message: InboundMessage, parent: str, most: int) -> bool:
    """Accept a message for a subagent of `parent`, once; False if `most` others are working."""
    if len({*background(db, parent)} - {message.session_key}) >= most:
        return False
    put(db, message)
    return True


def background(db: LedgerConnection, parent: str) -> list[str]:
    """The sessions of the subagents that work for `parent` in the background."""
    found = db.execute(  # by the message that began them, too: a chat may have the name of a subagent's session
        "SELECT DISTINCT session_key FROM inbox WHERE state IN ('ready', 'waiting', 'running', 'parked') "
        "AND substr(session_key, 1, ?) = ? AND substr(id, 1, ?) = ?",
        (len(parent) + 1, f"{parent}~", len(parent) + 1, f"{parent}:"),
    )
    return [key for (key,) in found.fetchall()]


def say(db: LedgerConnection, message: InboundMessage, control: Steer | FollowUp | Interrupt) -> bool:
    """Accept a message for the session's open turn; False, and nothing is accepted, if there is none.

    If the turn ends without reading it, it becomes an ordinary message.
    """
    if not is_busy(db, message.session_key) or not put(db, message):
        return False
    seq, state = db.execute(
        "SELECT seq, state FROM inbox WHERE channel = ? AND id = ?", [message.channel, message.id]
    ).fetchone()
    if state == "waiting":  # else the turn ended meanwhile
        _add_control(db, message.session_key, control, seq)
    return True


def is_busy(db: LedgerConnection, session_key: str, prefix: str = "") -> bool:
    """Whether the session has an open message whose id begins with `prefix`."""
    found = db.execute(
        "SELECT 1 FROM inbox WHERE session_key = ? AND state IN ('ready', 'running', 'parked') "
        "AND substr(id, 1, ?) = ? UNION ALL "
        "SELECT 1 FROM inbox WHERE session_key = ? AND state = 'waiting' AND substr(id, 1, ?) = ? LIMIT 1",
        [session_key, len(prefix), prefix] * 2,
    )
    return found.fetchone() is not None


def replace_message(db: LedgerConnection, message: InboundMessage) -> None:
    """Keep this in place of its channel's message with that id."""
    db.execute(
        "UPDATE inbox SET message = ? WHERE channel = ? AND id = ?", [to_json(message), message.channel, message.id]
    )


def accepted_key(db: LedgerConnection, channel: str, message_id: str) -> str:
    """The session of the channel's message with that id; empty if none was accepted."""
    row = db.execute("SELECT session_key FROM inbox WHERE channel = ? AND id = ?", [channel, message_id]).fetchone()
    return row[0] if row else ""


def parked(db: LedgerConnection, session_key: str) -> InboundMessage | None:
    """The message of the session's parked turn, if any."""
    row = db.execute(
        "SELECT message FROM inbox WHERE session_key = ? AND state IN ('ready', 'running', 'parked') "
        "AND state = 'parked'",  # the index is the heads'
        [session_key],
    ).fetchone()
    return _inbound(row[0]) if row else None


def running(db: LedgerConnection, session_key: str, message_id: str) -> tuple[InboundMessage, str] | None:
    """A message whose turn is running, and the native id of its reply's preview; None if it isn't."""
    row = db.execute(
        "SELECT message, preview FROM inbox WHERE session_key = ? AND state IN ('ready', 'running', 'parked') "
        "AND state = 'running' AND id = ?",
        [session_key, message_id],
    ).fetchone()
    return (_inbound(row[0]), row[1]) if row else None


def counts(db: LedgerConnection) -> dict[str, dict[str, int]]:
    """The numbers of rows in inbox and outbox, by state."""
    inbox = db.execute("SELECT state, COUNT(*) FROM inbox GROUP BY state").fetchall()
    outbox = db.execute("SELECT state, COUNT(*) FROM outbox GROUP BY state").fetchall()
    return {"inbox": dict(inbox), "outbox": dict(outbox)}


def open_counts(db: LedgerConnection) -> dict[str, dict[str, int]]:
    """As `counts`, without reading rows that are over."""
    # running rows have a worker: with that condition SQLite uses its index
    inbox = db.execute(
        "SELECT state, COUNT(*) FROM inbox WHERE state IN ('ready', 'parked') GROUP BY state "
        "UNION ALL SELECT 'running', COUNT(*) FROM inbox WHERE state = 'running' AND worker > '' "
        "UNION ALL SELECT 'waiting', COUNT(*) FROM inbox WHERE state = 'waiting' AND session_key IN "
        "(SELECT session_key FROM inbox WHERE state IN ('ready', 'parked') "
        "UNION ALL SELECT session_key FROM inbox WHERE state = 'running' AND worker > '')"
    ).fetchall()
    outbox = db.execute(
        "SELECT state, COUNT(*) FROM outbox WHERE state IN ('pending', 'sending') GROUP BY state"
    ).fetchall()
    return {"inbox": dict(inbox), "outbox": dict(outbox)}


def open_sessions(db: LedgerConnection) -> set[str]:
    """The sessions with a message that isn't over."""
    found = db.execute("SELECT session_key FROM inbox WHERE state IN ('ready', 'running', 'parked')")
    return {key for (key,) in found.fetchall()}


def latest(db: LedgerConnection, session_key: str) -> InboundMessage | None:
    """The session's latest message from a chat."""
    row = db.execute(
        "SELECT message FROM inbox WHERE session_key = ? AND channel <> ? ORDER BY seq DESC LIMIT 1",
        [session_key, SYSTEM],
    ).fetchone()
    return _inbound(row[0]) if row else None


def recent_messages(db: LedgerConnection, channel: str, most: int) -> list[InboundMessage]:
    """The latest messages accepted from a channel."""
    rows = db.execute("SELECT message FROM inbox WHERE channel = ? ORDER BY seq DESC LIMIT ?", [channel, most])
    return [_inbound(text) for (text,) in rows.fetchall()]


def origin_of(session_key: str, channel: str, chat: str) -> str:
    """The name of a turn of that session and chat, for readers in another chat."""
    key = SessionKey.parse(session_key)
    return {"cron": f"cron job {key.peer}", "heartbeat": "the heartbeat"}.get(key.channel, f"chat {channel}:{chat}")


def folded_sessions(db: LedgerConnection) -> list[tuple[str, str]]:
    """Sessions whose key an earlier version folded to lower case, and the key of the chat that wrote in each last."""
    rows = db.execute(
        "SELECT session_key, message FROM inbox WHERE seq IN "
        "(SELECT MAX(seq) FROM inbox WHERE channel <> ? GROUP BY session_key)",
        [SYSTEM],
    ).fetchall()
    found = list[tuple[str, str]]()
    for key, text in rows:
        said, kept = _inbound(text), SessionKey.parse(key)
        is_folded = kept.channel == said.channel != "cli" and said.chat.strip() and said.chat != kept.peer
        if is_folded and SessionKey.typed(said.chat).peer == kept.peer:
            found.append((key, str(replace(kept, peer=said.chat))))
    return found


def rename_session(db: LedgerConnection, old: str, new: str) -> None:
    """Move everything of one session in the ledger to another."""
    names = [f'"{old}"', f'"{new}"']  # whole strings of JSON
    if follow(db, new):
        db.execute(
            "UPDATE inbox SET state = 'waiting' WHERE session_key = ? AND state IN ('ready', 'running', 'parked')",
            [old],
        )
    db.execute(
        "UPDATE inbox SET session_key = ?, message = REPLACE(message, ?, ?) WHERE session_key = ?", [new, *names, old]
    )
    db.execute("UPDATE controls SET session_key = ? WHERE session_key = ?", [new, old])
    db.execute("UPDATE outbox SET message = REPLACE(message, ?, ?) WHERE message LIKE ?", [*names, f"%{names[0]}%"])
    db.execute("UPDATE cron SET job = REPLACE(job, ?, ?)", names)


# Turns


def claim(db: LedgerConnection, worker: str, now: float, most: int) -> list[Claim]:
    """Begin up to `most` due turns, those that have waited longest first."""
    rows = db.execute(
        "UPDATE inbox SET state = 'running', worker = ?, attempt = attempt + 1 WHERE seq IN "
        "(SELECT seq FROM inbox WHERE state IN ('ready', 'parked') AND due <= ? ORDER BY due, seq LIMIT ?) "
        "RETURNING seq, message, attempt, failures, deaths, followed",
        [worker, now, most],
    ).fetchall()
    return claims(worker, rows)


def claims(worker: str, rows: Iterable[tuple[int, str, int, int, int, int]]) -> list[Claim]:
    """The claims for rows of `seq, message, attempt, failures, deaths, followed`, in order."""
    return [Claim(worker, seq, _inbound(message), *counts) for seq, message, *counts in sorted(rows)]


def next_due(db: LedgerConnection) -> float | None:
    """When the next turn is due; None: there is none."""
    return db.execute("SELECT MIN(due) FROM inbox WHERE state IN ('ready', 'parked')").fetchone()[0]


def bring_forward(db: LedgerConnection, latest: float) -> None:
    """Bring forward retries that are due after `latest`."""
    rows = db.execute(
        "UPDATE inbox SET due = ? WHERE state IN ('ready', 'parked') AND state = 'ready' AND due > ? "
        "RETURNING session_key",
        [latest, latest],
    ).fetchall()
    for (key,) in rows:
        db.ring(key, latest)


def finish(db: LedgerConnection, turn: Claim, heard: Sequence[ArrivedControl], state: str, reason: str = "") -> bool:
    """End a turn as `done` or `failed`; the session's next message is ready. False: the worker has lost the turn."""
    key, followed = _leave(db, turn, state, 0.0, reason)
    if followed:
        for said in heard:
            if said.message is not None:
                db.execute("UPDATE inbox SET state = 'done' WHERE seq = ? AND state = 'waiting'", [said.message])
        db.execute("DELETE FROM controls WHERE session_key = ?", [key])
        _promote(db, key)
    return bool(key)


def park(db: LedgerConnection, turn: Claim, heard: Sequence[ArrivedControl], until: float) -> bool:
    """Park a turn until then, or until an answer; one that has already arrived makes it ready at once.

    False: as `finish`.
    """
    key, followed = _leave(db, turn, "parked", until)
    if key and until < float("inf"):
        db.ring(key, until)
    if followed:
        _remove_controls(db, [said for said in heard if said.message is None])
        answered = db.execute(
            "SELECT 1 FROM controls WHERE session_key = ? AND kind IN ('answer', 'stop', 'interrupt') AND seq > ? "
            "LIMIT 1",
            [key, max((said.seq for said in heard), default=0)],
        ).fetchone()
        if answered:
            _wake(db, key)
    return bool(key)


def retry(
    db: LedgerConnection, turn: Claim, heard: Sequence[ArrivedControl], due: float, *, failed: bool = True
) -> bool:
    """Run a turn that failed or couldn't begin again at `due`. False: as `finish`."""
    key, _ = _leave(db, turn, "ready", due)
    if key:
        db.ring(key, due)
        db.execute("UPDATE inbox SET failures = failures + ? WHERE seq = ?", [int(failed), turn.seq])
        _remove_controls(db, _used_up(heard))
    return bool(key)


def release(db: LedgerConnection, worker: str, heard: Sequence[ArrivedControl]) -> None:
    """Release the turns of a cancelled worker."""
    rows = db.execute(
        "UPDATE inbox SET state = 'ready', worker = '', due = 0 WHERE worker = ? AND state = 'running' "
        "RETURNING session_key",
        [worker],
    ).fetchall()
    for (key,) in rows:
        db.ring(key, 0.0)
    _remove_controls(db, _used_up(said for said in heard if (said.session_key,) in rows))


def release_dead(db: LedgerConnection) -> None:
    """Release the turns of dead workers, in a database without other processes."""
    db.execute(
        "UPDATE inbox SET state = 'ready', worker = '', due = 0, deaths = deaths + 1 WHERE state = 'running'", []
    )


def _leave(db: LedgerConnection, turn: Claim, state: str, due: float, reason: str = "") -> tuple[str, int]:
    """Take a turn from its worker; its session's key, and whether it is followed.

    The key is empty if the worker has lost the turn.
    """
    row = db.execute(
        "UPDATE inbox SET state = ?, due = ?, reason = ?, worker = '' "
        "WHERE seq = ? AND worker = ? AND attempt = ? AND state = 'running' RETURNING session_key, followed",
        [state, due, reason, turn.seq, turn.worker, turn.attempt],
    ).fetchone()
    return row or ("", 0)


# Controls


def control(db: LedgerConnection, session_key: str, given: Control) -> bool:
    """Pass a control to the session's turn; False, and it is dropped, if there is none."""
    while not follow(db, session_key):
        if not is_busy(db, session_key):
            return False
    _add_control(db, session_key, given, None)
    return True


def control_parked(db: LedgerConnection, session_key: str, given: Sequence[Control]) -> bool:
    """Pass controls to the session's parked turn; False, and they are dropped, if there is none."""
    if not follow(db, session_key) or parked(db, session_key) is None:
        return False
    for each in given:
        _add_control(db, session_key, each, None)
    _wake(db, session_key)
    return True


def controls_for(db: LedgerConnection, worker: str) -> list[ArrivedControl]:
    """The controls of the worker's turns, in the order in which they came."""
    rows = db.execute(
        "SELECT seq, session_key, kind, control, message FROM controls WHERE session_key IN "
        "(SELECT session_key FROM inbox WHERE worker = ? AND state = 'running') ORDER BY seq",
        [worker],
    ).fetchall()
    return [
        ArrivedControl(seq, key, msgspec.json.decode(given, type=_KINDS[kind]), message)
        for seq, key, kind, given, message in rows
    ]


def _add_control(db: LedgerConnection, session_key: str, given: Control, message: int | None) -> None:
    db.execute(
        "INSERT INTO controls (session_key, kind, control, message) VALUES (?, ?, ?, ?)",
        [session_key, _NAMES[type(given)], to_json(given), message],
    )
    if isinstance(given, Answer | Stop | Interrupt):  # a parked turn goes on after these
        _wake(db, session_key)


def _wake(db: LedgerConnection, session_key: str) -> None:
    woken = db.execute(
        "UPDATE inbox SET state = 'ready', due = 0 WHERE session_key = ? "
        "AND state IN ('ready', 'running', 'parked') AND state = 'parked' RETURNING 1",
        [session_key],
    )
    if woken.fetchone():
        db.ring(session_key, 0.0)


def _remove_controls(db: LedgerConnection, used_up: Iterable[ArrivedControl]) -> None:
    """Delete these; the others stay for the next attempt."""
    for said in used_up:
        db.execute("DELETE FROM controls WHERE seq = ?", [said.seq])


def _used_up(heard: Iterable[ArrivedControl]) -> list[ArrivedControl]:
    """The controls that a failed attempt uses up: all but answers and those made from messages."""
    return [said for said in heard if said.message is None and not isinstance(said.control, Answer)]


# What is over


def prune_inbox(db: LedgerConnection, now: float, keep: float, after: int, most: int) -> int | None:
    """Of the `most` rows after number `after`, remove those that have been over for `keep` seconds.

    Returns the number of the last row read; None if there are no more.
    """
    [last] = db.execute(
        "SELECT MAX(seq) FROM (SELECT seq FROM inbox WHERE seq > ? ORDER BY seq LIMIT ?) AS page", [after, most]
    ).fetchone()
    if last is None:
        return None
    some = "seq > ? AND seq <= ? AND state IN ('done', 'failed') AND over_since"
    db.execute(f"DELETE FROM inbox WHERE {some} BETWEEN 1 AND ?", [after, last, now - keep])  # noqa: S608 (ours)
    db.execute(f"UPDATE inbox SET over_since = ? WHERE {some} = 0", [now, after, last])  # noqa: S608
    return last


def files_of_messages(db: LedgerConnection) -> set[str]:
    """The paths of the files of all messages in the inbox."""
    rows = db.execute("SELECT message FROM inbox WHERE message LIKE ?", ['%"media":%']).fetchall()
    return {path for [text] in rows for path in msgspec.json.decode(text, type=InboundMessage).media}


Place = tuple[str, str, int]
"""The primary key of a row of the outbox: channel, chat and number."""


def prune_outbox(db: LedgerConnection, now: float, keep: float, after: Place, most: int) -> Place | None:
    """As `prune_inbox`; the last row of each chat stays, because the next number follows it."""
    last = db.execute(
        "SELECT channel, chat, seq FROM (SELECT channel, chat, seq FROM outbox WHERE (channel, chat, seq) > (?, ?, ?) "
        "ORDER BY channel, chat, seq LIMIT ?) AS page ORDER BY channel DESC, chat DESC, seq DESC LIMIT 1",
        [*after, most],
    ).fetchone()
    if last is None:
        return None
    some = (
        "(channel, chat, seq) > (?, ?, ?) AND (channel, chat, seq) <= (?, ?, ?) "
        "AND state NOT IN ('pending', 'sending') AND over_since"
    )
    db.execute(
        f"DELETE FROM outbox WHERE {some} BETWEEN 1 AND ? AND seq < (SELECT MAX(later.seq) "  # noqa: S608 (ours)
        "FROM outbox AS later WHERE later.channel = outbox.channel AND later.chat = outbox.chat)",
        [*after, *last, now - keep],
    )
    db.execute(f"UPDATE outbox SET over_since = ? WHERE {some} = 0", [now, *after, *last])  # noqa: S608
    return last


# Cron jobs


def jobs(db: LedgerConnection) -> list[tuple[str, float | None]]:
    """The jobs, and when each is due."""
    return db.execute("SELECT job, due FROM cron ORDER BY due, id").fetchall()


def add_job(db: LedgerConnection, job_id: str, job: str, due: float) -> None:
    """Add a job, unless there is one with its id."""
    db.execute("INSERT INTO cron (id, job, due) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", [job_id, job, due])


def set_due(db: LedgerConnection, job_id: str, due: float | None) -> None:
    """Set when a job is due; None disables it."""
    db.execute("UPDATE cron SET due = ? WHERE id = ?", [due, job_id])


def remove_job(db: LedgerConnection, job_id: str) -> None:
    """Remove a job."""
    db.execute("DELETE FROM cron WHERE id = ?", [job_id])


def next_job(db: LedgerConnection) -> float | None:
    """When the next job is due; None: there is none."""
    return db.execute("SELECT MIN(due) FROM cron", []).fetchone()[0]


def to_json(value: msgspec.Struct) -> str:
    """A value as the tables store it."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:  # half a character, as in an error that names a file
        return msgspec.json.encode(map_text(value, whole_characters)).decode()


def _inbound(text: str) -> InboundMessage:
    return msgspec.json.decode(text, type=InboundMessage)
