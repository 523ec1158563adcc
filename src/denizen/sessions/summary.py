"""A line of the index, taken from the beginning and the end of a session's file."""

import contextlib
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec

from denizen.entries import AnyEntry, EndEntry, SessionEntry, UserEntry
from denizen.messages import Text, UserMessage
from denizen.ports import SessionInfo
from denizen.sessions.key import key_of
from denizen.sessions.load import ENTRY, UNREADABLE

_WINDOW = 64 * 1024  # bytes looked at, at the beginning and at first at the end
_FURTHEST = 64 * _WINDOW  # bytes looked at to find how the last turn ended
_TITLE = 80  # characters
_FIRST_WORDS = re.compile(rb'^\{"type":"user".*?"type":"text","text":"((?:[^"\\]|\\.){1,1000})', re.DOTALL)

_KIND = re.compile(rb'^\{"type":"(user|assistant|started|tool|parked|answer)"')  # lines of a turn


class _Stamp(msgspec.Struct):
    at: Annotated[datetime, msgspec.Meta(tz=True)]


def summarise(path: Path) -> SessionInfo:
    """What the index says of a session. What damage hides is left out. Raises OSError."""
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
        beginning = file.read(_WINDOW)
        header, title = _beginning(beginning)
        end, stamp, now = _ending(file, beginning, stat.st_size)
    return SessionInfo(
        key=key_of(path) or (header.key if header else path.stem),
        title=title,
        workspace=header.workspace if header else "",
        profile=header.profile if header else "",
        updated=stamp.timestamp() if stamp else stat.st_mtime,
        bytes=stat.st_size,
        model=end.model if end else "",
        tokens=end.last_call_usage.context if end else 0,
        stop_reason=now or (end.stop_reason if end else ""),
        cost_usd=(end.usage.cost_usd if end else None) or 0.0,
    )


def _beginning(data: bytes) -> tuple[SessionEntry | None, str]:
    header = None
    for line in data.split(b"\n"):
        match _entry(line):
            case SessionEntry() as header:
                pass
            case UserEntry(message=message) if message.text.strip():
                return header, _title(_words(message))
            case None if words := _first_words(line):
                return header, _title(words)
    return header, ""


_Ending = tuple[EndEntry | None, datetime | None, str]
"""How the last turn that ended did, when something was written last, and how the turn after it stands, if there is one:
`parked` or `unfinished`."""


def _words(message: UserMessage) -> str:
    """What the user said first: what a host adds, such as the form of an answer, comes behind it."""
    return next(part.text for part in message.content if isinstance(part, Text) and part.text.strip())


def _ending(file: BinaryIO, beginning: bytes, size: int) -> _Ending:
    reach = min(size, _WINDOW)
    while True:
        tail = beginning if size <= len(beginning) else os.pread(file.fileno(), reach, size - reach)
        ending = _last(tail.split(b"\n"))
        if ending[0] or reach >= min(size, _FURTHEST):
            return ending
        reach = min(8 * reach, size, _FURTHEST)


def _last(lines: list[bytes]) -> _Ending:
    stamp = None
    now = ""
    for line in reversed(lines):
        stamp = stamp or _stamp(line)
        if b'"end"' in line and isinstance(end := _entry(line), EndEntry):
            return end, stamp, now
        if not now and (kind := _KIND.match(line)):
            now = "parked" if kind[1] == b"parked" else "unfinished"
    return None, stamp, now


def _entry(line: bytes) -> AnyEntry | None:
    try:
        return ENTRY.decode(line)
    except UNREADABLE:
        return None


def _stamp(line: bytes) -> datetime | None:
    try:
        return msgspec.json.decode(line, type=_Stamp).at
    except UNREADABLE:
        return None


def _first_words(line: bytes) -> str:
    """The words at the beginning of a message that is longer than the window; the last of them may be cut."""
    found = _FIRST_WORDS.match(line)
    words = found[1] if found else b""
    while words:
        with contextlib.suppress(*UNREADABLE):  # cut within an escape or a character
            return msgspec.json.decode(b'"' + words + b'"', type=str)
        words = words[:-1]
    return ""


def _title(text: str) -> str:
    words = "".join(filter(str.isprintable, " ".join(text[: 4 * _TITLE].split())))
    return words if len(words) <= _TITLE else words[: _TITLE - 1] + "…"
