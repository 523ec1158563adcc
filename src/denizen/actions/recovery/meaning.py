"""What a reply means: its calls, words and thoughts.

A reply may be one text, or messages with headers: Harmony's channels, and the recipients of Muse.
`<|start|>assistant<|channel|>commentary to=functions.NAME<|message|>{…}<|call|>`: the header says for whom the body is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from denizen.actions.recovery.convert import Converter
from denizen.actions.recovery.marks import OTHERS, QUOTES
from denizen.actions.recovery.reading import Reader, is_quoted
from denizen.actions.recovery.scanner import OfferedTools, Scanner, WorkLimitReached, WrittenCall
from denizen.actions.recovery.values import Unreadable, read_whole


@dataclass(frozen=True, slots=True)
class Meaning:
    """Calls with their arguments converted, words and thoughts, each in their order.

    `broken` says of other calls why they aren't among these.
    """

    calls: list[WrittenCall]
    words: list[str]
    thoughts: list[str]
    broken: Sequence[str] = ()


def read_meaning(text: str, tools: OfferedTools) -> Meaning:
    """What the text says and asks for."""
    sent = _messages(text)
    if not sent:
        return _of_text(text, tools)
    meaning = Meaning([], [], [])
    for message in sent:
        if message.kind == "call":
            meaning.calls.extend(_addressed(message, tools))
        elif message.kind == "thought" or (
            message.kind == "commentary" and isinstance(_value(message.body, tools), dict)
        ):
            meaning.thoughts.append(message.body)
        elif message.kind != "other's":
            meaning.words.append(message.body)
    return meaning


def _of_text(text: str, tools: OfferedTools) -> Meaning:
    """Calls without marks are looked for where there are no others: next to those they are words."""
    scanner = Scanner(text, tools)
    found = Reader(scanner)
    found.run()
    if found.doubtful and not found.calls:
        found = Reader(scanner, bare=True)
        found.run()
    return Meaning([_converted(call, text, tools) for call in found.calls], found.text, found.thoughts, found.broken)


def _addressed(message: "_Message", tools: OfferedTools) -> list[WrittenCall]:
    """The call that a message to a tool is: its body are the arguments, or the call once more in a form of its own."""
    name, args = tools.find(message.recipient), _value(message.body, tools)
    if args is None:
        return _of_text(message.body, tools).calls
    if not name or not isinstance(args, dict):
        return []
    return [_converted(WrittenCall(name, args, message.written), message.body, tools)]


def _value(text: str, tools: OfferedTools) -> Any:
    """The value that the text is; None where it is none."""
    try:
        return read_whole(text, Scanner(text, tools))
    except (Unreadable, WorkLimitReached):
        return None


def _converted(call: WrittenCall, text: str, tools: OfferedTools) -> WrittenCall:
    name = tools.find(call.name)
    args = Converter(tools.schemas[name], Scanner(text, tools)).arguments(call.args or {})
    return WrittenCall(name, args, call.wording)


_MARK: Final = re.compile(r"<\|(start|message|end|call|return|eom|eot)\|>")
_HEADER: Final = re.compile(
    r"\s{0,9}(?P<role>[\w.-]{1,128})?\s{0,9}"
    r"(?:(?:<\|channel\|>\s?\w{1,20}|to=[\w.-]{1,128}|<\|constrain\|>\s?\w{1,20})\s{0,9}){0,6}"
)
_ANOTHER: Final = re.compile(f"{QUOTES}|{OTHERS}", re.MULTILINE)
_CHANNEL: Final = re.compile(r"<\|channel\|>\s?(\w{1,20})")
_RECIPIENT: Final = re.compile(r"\bto=([\w.-]{1,128})")
_STRIPPED: Final = re.compile(
    r"(?:\A\s?|assistant\s?)(analysis|commentary|(?<=assistant)final|(?<=assistant\s)final)(?![ \t](?!to=)|\Z)\n?"
)
_STRIPPED_RECIPIENT: Final = re.compile(r"\s?to=([\w.-]{1,128})\s{0,9}(?:json|code)?\s{0,9}(?=\{)")
_NOT_TOOLS: Final = {"", "user", "self", "assistant", "all"}


class _Message(NamedTuple):
    """One message: what it is (call, thought, commentary, words, or other's), and how it is written."""

    kind: str
    body: str
    recipient: str = ""
    written: str = ""


def _messages(text: str) -> list[_Message]:
    """The messages that a reply is made of; none where there is something between them, as in a text about them."""
    if "<|message|>" not in text:
        return _without_tokens(text)
    pieces = ["start", *_MARK.split(text), ""]  # each piece after its mark
    found: list[_Message] = []
    header = ""
    for number in range(0, len(pieces) - 2, 2):
        mark, piece, following = pieces[number : number + 3]
        if mark == "message":
            found.append(_message(header, piece))
        elif following == "message" and _HEADER.fullmatch(piece):
            header = piece
        elif number == 0 and piece.strip() and following != "message" and "`" not in piece:
            if _ANOTHER.search(piece) or is_quoted(piece, len(piece), len(piece)):
                return []
            found.append(_Message("thought", piece))
        elif piece.strip() and (following == "message" or not _HEADER.fullmatch(piece)):
            return []
    return found


def _without_tokens(text: str) -> list[_Message]:
    """The messages of `analysisHm.assistantfinalIt is 4.`, a reply whose special tokens a server has taken out."""
    first, *pieces = _STRIPPED.split(text)
    found: list[_Message] = []
    for channel, body in zip(pieces[0::2], pieces[1::2], strict=True):
        to = _STRIPPED_RECIPIENT.match(body)
        recipient = to[1] if to else ""
        kind = _kind("", "final" if channel == "final" else "analysis", recipient)
        found.append(_Message(kind, body[to.end() :] if to else body, recipient, body))
    answers = any(message.kind in {"call", "words"} for message in found)
    return found if answers and not first.strip() else []


def _message(header: str, body: str) -> _Message:
    match = _HEADER.fullmatch(header)
    channels, to = _CHANNEL.findall(header), _RECIPIENT.search(header)
    recipient = to[1] if to else ""
    kind = _kind((match["role"] or "") if match else "", channels[-1] if channels else "", recipient)
    return _Message(kind, body, recipient, f"{header[to.start(1) :]}<|message|>{body}" if to else "")


def _kind(role: str, channel: str, recipient: str) -> str:
    if role not in {"", "assistant"}:
        return "other's"  # a result that the model repeats
    if recipient not in _NOT_TOOLS:
        return "call"
    if channel == "analysis" or recipient == "self":
        return "thought"
    return "commentary" if channel == "commentary" else "words"
