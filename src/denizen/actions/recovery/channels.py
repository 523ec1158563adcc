"""Replies in messages with headers: Harmony's channels, and the recipients of Muse.

`<|start|>assistant<|channel|>commentary to=functions.NAME<|message|>{…}<|call|>`: the header says for whom the body is.
"""

import re
from dataclasses import dataclass
from typing import Final

from denizen.actions.recovery.quoting import quoted
from denizen.actions.recovery.vocabulary import OTHERS, QUOTES

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


@dataclass(frozen=True, slots=True)
class Message:
    """One message: whose it is, its channel, for whom it is, what it says, and how it is written from there on."""

    role: str
    channel: str
    recipient: str
    body: str
    written: str = ""

    @property
    def own(self) -> bool:
        """Whether it is the model's, and not a result that it repeats."""
        return self.role in {"", "assistant"}

    @property
    def calls(self) -> bool:
        """Whether it goes to a tool."""
        return self.own and self.recipient not in _NOT_TOOLS

    @property
    def thinks(self) -> bool:
        """Whether it is for the model alone."""
        return self.own and not self.calls and (self.channel == "analysis" or self.recipient == "self")


def messages(text: str) -> list[Message]:
    """The messages that a reply is made of; none where something stands between them, as in a text about them."""
    if "<|message|>" not in text:
        return _without_tokens(text)
    pieces = ["start", *_MARK.split(text), ""]  # each piece behind its mark
    found: list[Message] = []
    header = ""
    for number in range(0, len(pieces) - 2, 2):
        mark, piece, following = pieces[number : number + 3]
        if mark == "message":
            found.append(_message(header, piece))
        elif following == "message" and _HEADER.fullmatch(piece):
            header = piece
        elif number == 0 and piece.strip() and following != "message" and "`" not in piece:
            if _ANOTHER.search(piece) or quoted(piece, 0, len(piece), len(piece)):
                return []
            found.append(Message("", "analysis", "", piece))
        elif piece.strip() and (following == "message" or not _HEADER.fullmatch(piece)):
            return []
    return found


def _without_tokens(text: str) -> list[Message]:
    """The messages of `analysisHm.assistantfinalIt is 4.`, a reply whose special tokens a server has taken out."""
    first, *pieces = _STRIPPED.split(text)
    found: list[Message] = []
    for channel, body in zip(pieces[0::2], pieces[1::2], strict=True):
        to = _STRIPPED_RECIPIENT.match(body)
        kind = "final" if channel == "final" else "analysis"
        found.append(Message("", kind, to[1] if to else "", body[to.end() :] if to else body, body))
    told = any(message.calls or message.channel == "final" for message in found)
    return found if told and not first.strip() else []


def _message(header: str, body: str) -> Message:
    match = _HEADER.fullmatch(header)
    channels, recipient = _CHANNEL.findall(header), _RECIPIENT.search(header)
    role = match["role"] or "" if match else ""
    written = f"{header[recipient.start(1) :]}<|message|>{body}" if recipient else ""
    return Message(role, channels[-1] if channels else "", recipient[1] if recipient else "", body, written)
