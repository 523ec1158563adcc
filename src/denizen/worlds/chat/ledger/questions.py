"""Questions in a chat: their short words, and which one an answer means."""

import hashlib
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from denizen.ports import Answer, AnswerChoice, Control, InboundMessage, OutboundMessage
from denizen.sessions import SessionKey
from denizen.sessions.key import bounded
from denizen.worlds.chat.ledger.ledger import LedgerConnection, parked

CALL = "call_id"
"""The metadata key of the call that waits for the answer."""
WORD, ASKED_AT, ANSWERED_BY, ASKS = "word", "asked_at", "answered_by", "asks"
"""The metadata keys of its word, the time it was asked (seconds since the epoch), who may answer besides the owner
(`channel:sender`), and the question without the instructions for answering."""
SEEN = "denizen.text.seen"
"""The metadata key, in an answer, of the number of the last reply that its sender was shown, if known."""
MAX_ID_CHARS = 500
"""Characters that the tables' indexes take of an id from outside, however it is encoded."""
NOTHING_WAITS = "Nothing is waiting for approval here."

_WORDS = [f"{letter}{digit}" for letter in "abcdefghijklmnopqrstuvwxyz" for digit in range(10)]
_YES = re.compile(r"yes(?:\s+(?P<word>[a-z]\d))?[.!]?", re.IGNORECASE)
_COMMAND = re.compile(
    r"/(?P<verdict>approve|deny)(?:\s+(?P<word>[a-z]\d)(?=\s|$))?(?:\s+(?P<text>.*))?", re.IGNORECASE | re.DOTALL
)
_DAY_S = 86_400.0
_SHOWN_CHARS = 300

MayAnswer = Callable[[OutboundMessage], bool]


class OpenQuestion(NamedTuple):
    """A waiting question, and whether its chat was shown it."""

    message: OutboundMessage
    shown: bool

    @property
    def word(self) -> str:
        """Its word; empty if an earlier version asked it."""
        return str(self.message.metadata.get(WORD, ""))

    @property
    def line(self) -> str:
        """The question in a line."""
        text = " ".join(str(self.message.metadata.get(ASKS, self.message.content)).split())
        return f"{self.word}: {text[:_SHOWN_CHARS]}"


class Reading(NamedTuple):
    """The meaning of a message to its chat's questions: a control for a session, or else a reply."""

    reply: str = ""
    session_key: str = ""
    control: Control | None = None


def with_word(db: LedgerConnection, question: OutboundMessage) -> OutboundMessage:
    """The question with instructions and buttons. Its word hasn't been used in the chat for a day."""
    now, used = question.metadata[ASKED_AT], dict[str, float]()
    for _, each, _ in _asked(db, question.channel, question.chat):
        used[each.metadata.get(WORD, "")] = each.metadata.get(ASKED_AT, 0.0)
    start = int(hashlib.sha256(question.id.encode(errors="replace")).hexdigest(), 16) % len(_WORDS)
    words = [*_WORDS[start:], *_WORDS[:start]]
    unused = (each for each in words if now - used.get(each, 0.0) >= _DAY_S)
    word = next(unused, None) or min(words, key=lambda each: used.get(each, 0.0))
    text = f"{question.content}\n\nAnswer /approve {word}, or /deny {word} and why."
    choices = (AnswerChoice("Approve", f"/approve {word}"), AnswerChoice("Deny", f"/deny {word}"))
    metadata = {**question.metadata, WORD: word, ASKS: question.content}
    return replace(question, content=text, choices=choices, metadata=metadata)


def open_questions(
    db: LedgerConnection, channel: str = "", chat: str = "", seen: float = float("inf")
) -> list[OpenQuestion]:
    """The open questions of parked sessions, in one chat or in all; those up to number `seen` count as seen."""
    waiting = db.execute(  # with both conditions SQLite uses its index
        "SELECT session_key, id FROM inbox WHERE state IN ('ready', 'parked') AND state = 'parked'"
    ).fetchall()
    if not waiting:
        return []
    messages, last = dict(waiting), dict[str, OpenQuestion]()
    for seq, each, state in _asked(db, channel, chat):
        if messages.get(each.session_key) == each.in_reply_to:
            last[each.session_key] = OpenQuestion(each, state == "sent" and seq <= seen)
    return [*last.values()]


def asked_by(db: LedgerConnection, message: InboundMessage, call_id: str) -> list[OpenQuestion]:
    """The question about a call that a message's turn waits for, in whichever chat it was asked."""
    rows = db.execute("SELECT message FROM outbox WHERE id = ?", [question_id(message, call_id)]).fetchall()
    return [OpenQuestion(msgspec.json.decode(text, type=OutboundMessage), shown=True) for (text,) in rows]


def question_id(message: InboundMessage, call_id: str) -> str:
    """The id of the question of a message's turn about a call; a question that is asked twice is one row."""
    return f"{message.id}:ask:{call_id}"


def may_be_answer(text: str) -> bool:
    """Whether a message is a plain yes, or an answer by a command."""
    return bool(_YES.fullmatch(text.strip()) or _COMMAND.fullmatch(text.strip()))


def word_in(text: str) -> str:
    """The question's word in an answer; empty if the message has none."""
    match = _YES.fullmatch(text.strip()) or _COMMAND.fullmatch(text.strip())
    return (match["word"] or "").lower() if match else ""


def read_answer(db: LedgerConnection, message: InboundMessage, may_answer: MayAnswer) -> Reading | None:
    """The meaning of a message to its chat's questions; None: it isn't an answer.

    If no question in the chat has its word, it answers one in another chat that the sender may answer.
    """
    found = open_questions(db, message.channel, message.chat, message.metadata.get(SEEN, float("inf")))
    if (word := word_in(message.content)) and word not in (each.word for each in found):
        mine = [each for each in open_questions(db) if each.word == word and may_answer(each.message)]
        found = mine or found
    reading = choose(found, message.content, may_answer)
    if reading is None and (match := _YES.fullmatch(message.content.strip())) and (word := match["word"]):
        asked = (each.metadata.get(WORD) for _, each, _ in _asked(db, message.channel, message.chat))
        return Reading(_not_open(word, [])) if word.lower() in asked else None
    return reading


def choose(found: Sequence[OpenQuestion], text: str, may_answer: MayAnswer) -> Reading | None:
    """The open question that an answer means; None: a plain yes without a question, or no answer."""
    text = text.strip()
    match = _YES.fullmatch(text) or _COMMAND.fullmatch(text)
    if match is None:
        return None
    parts = match.groupdict("")
    is_command, word = "verdict" in parts, parts["word"].lower()
    mine = [each for each in found if may_answer(each.message)]
    if not mine:
        not_yours = "Only the owner or the person who asked may answer this."
        return Reading(not_yours if found else _not_open(word, []) if word else NOTHING_WAITS) if is_command else None
    meant = [each for each in found if each.word == word] if word else found
    if len(meant) != 1 or not (word or meant[0].shown) or meant[0] not in mine:
        return Reading(_not_open(word, mine) if word else _listed("Say which one you mean:", mine))
    question = meant[0].message
    allow = parts.get("verdict", "approve").lower() == "approve"
    return Reading("", question.session_key, Answer(question.metadata[CALL], allow, parts.get("text", "").strip()))


def waiting_text(db: LedgerConnection, message: InboundMessage, may_answer: MayAnswer) -> tuple[str, str]:
    """The reply to a message whose session waits for an answer, and the question's id; empty: it doesn't wait."""
    waiting = parked(db, message.session_key)
    if not waiting:
        return "", ""
    key = message.session_key
    here = [each for each in open_questions(db, message.channel, message.chat) if each.message.session_key == key]
    if not here and SessionKey.parse(key).kind == "direct":  # groups don't see questions from the owner's other chats
        here = [each for each in open_questions(db) if each.message.session_key == key and may_answer(each.message)]
    if not here:
        words = "Your message waits: the owner must answer an earlier question of this chat first."
        return words, waiting.id
    return _listed("Your message waits for an answer to this:", here), here[-1].message.id


def _asked(db: LedgerConnection, channel: str, chat: str) -> list[tuple[int, OutboundMessage, str]]:
    """The questions sent to a chat, or to any (empty channel), in order: number, message and state."""
    place, chats = ("channel = ? AND chat = ? AND ", [channel, bounded(chat, MAX_ID_CHARS)]) if channel else ("", [])
    rows = db.execute(
        f"SELECT seq, message, state FROM outbox WHERE {place}message LIKE ? ORDER BY seq",  # noqa: S608 (ours)
        [*chats, f'%"{CALL}":%'],
    ).fetchall()
    read = ((seq, msgspec.json.decode(text, type=OutboundMessage), state) for seq, text, state in rows)
    return [row for row in read if CALL in row[1].metadata]


def _not_open(word: str, others: Sequence[OpenQuestion]) -> str:
    return _listed(f"{word} isn't open. Open:", others) if others else f"{word} isn't open."


def _listed(head: str, found: Sequence[OpenQuestion]) -> str:
    """The questions, and how to answer them."""
    word = found[0].word
    return "\n".join((head, *(each.line for each in found), f"\nAnswer /approve {word}, or /deny {word} and why."))
