"""What was asked: the sentence without its politeness, and the names in it without their quotes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from denizen.messages import Message, Text, UserMessage

_QUOTES = re.compile(r"""`+([^`]+)`+|"([^"]+)"|“([^”]+)”|«([^»]+)»|‘([^’]+)’|(?<!\w)'([^']+)'(?!\w)""")
_HELD = re.compile("\ue000(\\d+)\ue001")
_POLITE = re.compile(
    r"^(?:(?:hey|hi|hello|ok(?:ay)?|so|and|now|then|well|denizen|please|kindly|just|quickly)\b[,:!.]*\s+"
    r"|(?:can|could|would|will) you\s+|tell me\s+|let me know\s+|do you know\s+|i wonder\s+"
    r"|i(?: want|'d like| would like| need)(?: you)? to (?:know\s+)?)",
    re.IGNORECASE,
)
_AFTER = re.compile(r"(?:[\s,]*\b(?:please|thanks|thank you|for me|again)|[\s?!.,:;]+)$", re.IGNORECASE)
_NUMBERS = {"few": 5, "couple": 2, "two": 2, "three": 3, "four": 4, "five": 5, "ten": 10, "dozen": 12}
_SHORT = ((r"\b(what|where|who|there|it|that)'s\b", r"\1 is"), (r"\bdon't\b", "do not"), (r"\bhaven't\b", "have not"))


@dataclass(frozen=True, slots=True)
class Question:
    """A question: `said` as it came, and `text` to match, with a placeholder for each of the `quoted` names."""

    said: str
    text: str
    quoted: Sequence[str]

    def name(self, found: str | None) -> str:
        """A matched part as the user wrote it, without quotes and closing punctuation."""
        piece = (found or "").strip(" ,;:?!")
        name = self.plain(piece)
        return name if _HELD.fullmatch(piece) else name.rstrip(".").removesuffix("()")

    def place(self, found: re.Match[str]) -> str:
        """The matched place to search; `.` by default."""
        return self.name(found.groupdict().get("place")) or "."

    def count(self, found: re.Match[str], default: int, most: int) -> int:
        """The matched number of rows."""
        word = (found.groupdict().get("count") or "").lower()
        number = int(word) if word.isdecimal() and len(word) < 9 else _NUMBERS.get(word, default)
        return min(max(number, 1), most)

    def plain(self, found: str) -> str:
        """A matched part with its quoted names filled in."""
        return _HELD.sub(lambda held: self.quoted[int(held[1])], found)


def read_question(said: str) -> Question:
    """The question that `said` asks."""
    quoted: list[str] = []

    def hold(match: re.Match[str]) -> str:
        quoted.append(next(group for group in match.groups() if group))
        return f"\ue000{len(quoted) - 1}\ue001"

    text = _QUOTES.sub(hold, said.replace("\ue000", " "))
    text = " ".join(text.replace("’", "'").split())
    for short, long in _SHORT:
        text = re.sub(short, long, text, flags=re.IGNORECASE)
    while (plain := _AFTER.sub("", _POLITE.sub("", text))) != text:
        text = plain
    return Question(said, text, quoted)


def last_said(messages: Sequence[Message]) -> tuple[int, str]:
    """The position and the words of the user's last message; -1: none. Notes of the system and the time don't count."""
    for place, message in reversed([*enumerate(messages)]):
        if isinstance(message, UserMessage) and not message.text.startswith("[system]"):
            words = [part.text for part in message.content if isinstance(part, Text)]
            return place, "".join(each for each in words if not each.startswith("\n\n<time>")).strip()
    return -1, ""
