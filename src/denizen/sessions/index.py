"""A line of the index, taken from the beginning and the end of a session's file."""

import contextlib
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec

from denizen.entries import AnyEntry, EndEntry, SessionEntry, UserEntry
from denizen.messages import Text
from denizen.ports import SessionInfo
from denizen.sessions.codec import ENTRY, UNREADABLE
from denizen.sessions.key import key_of

_WINDOW = 64 * 1024  # bytes looked at, at the beginning and at first at the end
_FURTHEST = 64 * _WINDOW  # bytes looked at to find how the last turn ended
_TITLE = 80  # characters
_FIRST_TEXT = re.compile(rb'^\{"type":"user".*?"type":"text","text":"((?:[^"\\]|\\.){1,1000})', re.DOTALL)
_OF_A_TURN = re.compile(rb'^\{"type":"(user|assistant|started|tool|parked|answer)"')


class _Stamp(msgspec.Struct):
    at: Annotated[datetime, msgspec.Meta(tz=True)]


class _Ending(NamedTuple):
    """How the last turn that ended did, when something was written last, and what became of a turn after it.

    `unended` is `parked` or `unfinished`; empty: there is no turn after it.
    """

    end: EndEntry | None
    written: datetime | None
    unended: str


def summarise(path: Path) -> SessionInfo:
    """What the index says of a session. What damage hides is left out. Raises OSError."""
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
        beginning = file.read(_WINDOW)
        header, title = _read_beginning(beginning)
        size, reach = stat.st_size, _WINDOW
        ending = _read_ending(beginning if size <= reach else os.pread(file.fileno(), reach, size - reach))
        while not ending.end and reach < min(size, _FURTHEST):
            reach = min(8 * reach, size, _FURTHEST)
            ending = _read_ending(os.pread(file.fileno(), reach, size - reach))
    end = ending.end
    return SessionInfo(
        key=key_of(path) or (header.key if header else path.stem),
        title=title,
        workspace=header.workspace if header else "",
        profile=header.profile if header else "",
        updated=ending.written.timestamp() if ending.written else stat.st_mtime,
        bytes=stat.st_size,
        model=end.model if end else "",
        tokens=end.last_call_usage.context if end else 0,
        stop_reason=ending.unended or (end.stop_reason if end else ""),
        cost_usd=(end.usage.cost_usd if end else None) or 0.0,
    )


def _read_beginning(data: bytes) -> tuple[SessionEntry | None, str]:
    """The header, and the title: what the user said first, without what a host adds, such as the form of an answer."""
    header = None
    for line in data.split(b"\n"):
        match _entry(line):
            case SessionEntry() as header:
                pass
            case UserEntry(message=message) if message.text.strip():
                texts = (part.text for part in message.content if isinstance(part, Text))
                return header, _title(next(filter(str.strip, texts)))
            case None if text := _first_text(line):
                return header, _title(text)
    return header, ""


def _read_ending(data: bytes) -> _Ending:
    written = None
    unended = ""
    for line in reversed(data.split(b"\n")):
        if written is None:
            with contextlib.suppress(*UNREADABLE):
                written = msgspec.json.decode(line, type=_Stamp).at
        if b'"end"' in line and isinstance(end := _entry(line), EndEntry):
            return _Ending(end, written, unended)
        if not unended and (kind := _OF_A_TURN.match(line)):
            unended = "parked" if kind[1] == b"parked" else "unfinished"
    return _Ending(None, written, unended)


def _entry(line: bytes) -> AnyEntry | None:
    with contextlib.suppress(*UNREADABLE):
        return ENTRY.decode(line)
    return None


def _first_text(line: bytes) -> str:
    """The beginning of a message that is longer than the window; its last word may be cut."""
    found = _FIRST_TEXT.match(line)
    text = found[1] if found else b""
    while text:
        with contextlib.suppress(*UNREADABLE):  # cut within an escape or a character
            return msgspec.json.decode(b'"' + text + b'"', type=str)
        text = text[:-1]
    return ""


def _title(text: str) -> str:
    line = "".join(filter(str.isprintable, " ".join(text[: 4 * _TITLE].split())))
    return line if len(line) <= _TITLE else line[: _TITLE - 1] + "…"
