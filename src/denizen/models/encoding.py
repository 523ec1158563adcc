"""What was said, as the bytes of a request: every message is encoded once per session, however often it is sent."""

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from typing import Any, Final, NamedTuple

import msgspec

from denizen.messages import AssistantMessage, Message

MOST: Final = 64 * 1024 * 1024
"""Bytes that are kept for all sessions together; the session unused for longest goes first."""

EncodeRun = Callable[[Sequence[Message]], bytes]
"""Makes wire messages, joined by commas, of a run: consecutive messages, either all the assistant's or none."""


class Run(NamedTuple):
    """Where a run ends: after how many messages, and after how many bytes; and whose it is."""

    messages: int
    bytes: int
    assistant: bool


@dataclass(slots=True)
class Encoded:
    """The messages of one request: `text` is the inside of a JSON array. `settings` and `head` are the writer's."""

    messages: list[Message] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    text: bytearray = field(default_factory=bytearray)
    settings: Any = None
    head: bytes = b""

    def update(self, messages: list[Message], encode: EncodeRun) -> None:
        """Make it the encoding of `messages`; what was there already costs a comparison."""
        self._keep(_same(self.messages, messages))
        start, end = self._end()
        for assistant, group in groupby(messages[start:], key=_is_assistant):
            run = list(group)
            if piece := encode(run):
                self.text += b"," + piece if self.text else piece
            start, end = start + len(run), len(self.text)
            self.runs.append(Run(start, end, assistant))
        self.messages = messages

    def _keep(self, same: int) -> None:
        """Drop what differs, and the last run that doesn't: it may go on."""
        while self.runs and self.runs[-1].messages >= same:
            self.runs.pop()
        del self.text[self._end()[1] :]

    def _end(self) -> tuple[int, int]:
        return self.runs[-1][:2] if self.runs else (0, 0)


class Encodings:
    """The encodings of the sessions that were active last."""

    def __init__(self, encode: EncodeRun, most: int = MOST) -> None:
        self._encode = encode
        self._most = most
        self._size = 0
        self._sessions: OrderedDict[str, Encoded] = OrderedDict()

    def of(self, messages: Sequence[Message], session_key: str) -> Encoded:
        """The encoding of `messages`; without a session it isn't kept."""
        encoded = self._sessions.pop(session_key, None) or Encoded()
        self._size -= len(encoded.text)
        encoded.update([*messages], self._encode)
        if session_key:
            self._sessions[session_key] = encoded
            self._size += len(encoded.text)
            self._evict()
        return encoded

    def _evict(self) -> None:
        while self._size > self._most:
            _, oldest = self._sessions.popitem(last=False)
            self._size -= len(oldest.text)


def _is_assistant(message: Message) -> bool:
    return type(message) is AssistantMessage


def _same(old: list[Message], new: list[Message]) -> int:
    """How many messages at the beginning are the same. Comparing the lists as a whole looks at identity first, in C."""
    if old == new[: len(old)]:
        return len(old)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def encode_json(value: Any) -> bytes:
    """`value` as JSON; what can't be UTF-8 (half of a surrogate pair) becomes a question mark."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


_encode: Final = msgspec.json.Encoder().encode
