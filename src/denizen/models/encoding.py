"""Messages as the bytes of a request: each is encoded once per session, however often it is sent."""

import base64
import json
from collections.abc import Callable, Sequence
from itertools import groupby, takewhile
from typing import Any, Final, NamedTuple

import msgspec

from denizen.messages import AssistantMessage, Message
from denizen.runtime.cache import BoundedCache

MAX_CACHED_BYTES: Final = 64 * 1024 * 1024
"""Bytes that are kept for all sessions together; the session unused for longest goes first."""

MAX_SESSIONS: Final = 512
"""The most sessions whose encodings are kept."""

EncodeRun = Callable[[Sequence[Message]], bytes]
"""Makes wire messages, joined by commas, of a run: consecutive messages, either all the assistant's or none."""


class Run(NamedTuple):
    """Up to which message a run goes, and whose it is."""

    until: int
    assistant: bool


class Encoded:
    """The messages of one session's latest request: the `texts` of its `runs`.

    `settings` and `head` are what else the writer of requests keeps for the next one.
    """

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.texts: list[bytes] = []
        self.settings: Any = None
        self.head = b""
        self.size = 0
        self._messages: list[Message] = []

    def update(self, messages: Sequence[Message], encode: EncodeRun) -> None:
        """Make it the encoding of `messages`; what is encoded already costs no more than a comparison."""
        messages = messages if type(messages) is list else [*messages]
        same = _count_same(self._messages, messages)
        following = messages[same] if same < len(messages) else None
        while self.runs:
            until, assistant = self.runs[-1]
            goes_on = following is not None and _is_assistant(following) == assistant
            if until < same or (until == same and not goes_on):
                break
            del self.runs[-1]
            self.size -= len(self.texts.pop())
        until = self.runs[-1].until if self.runs else 0
        for assistant, group in groupby(messages[until:], _is_assistant):
            run = [*group]
            until += len(run)
            if text := encode(run):
                self.runs.append(Run(until, assistant))
                self.texts.append(text)
                self.size += len(text)
        self._messages[same:] = messages[same:]


class Encodings:
    """The encodings of the sessions that were active last."""

    def __init__(self, encode: EncodeRun, most: int = MAX_CACHED_BYTES) -> None:
        self._encode = encode
        self._sessions = BoundedCache[Encoded](MAX_SESSIONS, most)

    def of(self, messages: Sequence[Message], session_key: str) -> Encoded:
        """The encoding of `messages`; without a session it isn't kept."""
        encoded = self._sessions.take(session_key) or Encoded()
        encoded.update(messages, self._encode)
        if session_key:
            self._sessions.put(session_key, encoded, encoded.size)
        return encoded


def _is_assistant(message: Message) -> bool:
    return type(message) is AssistantMessage


def _count_same(old: list[Message], new: list[Message]) -> int:
    """The number of messages at the beginning that are the same.

    Nearly always all that were known are. Lists of one length are compared in C, by identity first and without a touch
    of the messages themselves: `old` is lent the others for that.
    """
    known = len(old)
    old += new[known:]
    unchanged = old == new
    del old[known:]
    if unchanged:
        return known
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def data_url(media_type: str, data: bytes) -> str:
    """A file as an address that holds all of it."""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def encode_json(value: Any) -> bytes:
    """`value` as JSON; what can't be UTF-8 (half of a surrogate pair) becomes a question mark."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


_encode: Final = msgspec.json.Encoder().encode
