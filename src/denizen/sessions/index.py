"""A line of the index, taken from the beginning and the end of a session's file."""

import contextlib
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Annotated, BinaryIO, NamedTuple

import msgspec
from msgspec.structs import replace

from denizen.entries import (
    AnswerEntry,
    AnyEntry,
    AssistantEntry,
    EndEntry,
    ParkedEntry,
    SessionEntry,
    StartedEntry,
    ToolEntry,
    UserEntry,
)
from denizen.messages import Text, UserMessage
from denizen.ports import SessionInfo
from denizen.sessions.codec import ENTRY, UNREADABLE
from denizen.sessions.key import key_of

_WINDOW = 64 * 1024  # bytes looked at, at first at the end
_FURTHEST = 64 * _WINDOW  # bytes looked at to find how the last turn ended; and the longest line that is looked at
_FIRST_LINES = 100  # lines in which the first message is looked for
_TITLE = 80  # characters
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
        header, title = _read_beginning(file)
        reach = min(stat.st_size, _WINDOW)
        ending = _read_ending(os.pread(file.fileno(), reach, stat.st_size - reach))
        while not ending.end and reach < min(stat.st_size, _FURTHEST):
            reach = min(8 * reach, stat.st_size, _FURTHEST)
            ending = _read_ending(os.pread(file.fileno(), reach, stat.st_size - reach))
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


def with_entry(info: SessionInfo, entry: AnyEntry, size: int) -> SessionInfo:
    """What the index says of a session with one entry more, of so many bytes."""
    updated = entry.at.timestamp() if entry.at else info.updated
    info = replace(info, updated=updated, bytes=info.bytes + size)
    match entry:
        case SessionEntry():
            return replace(info, workspace=entry.workspace, profile=entry.profile)
        case UserEntry():
            return replace(info, title=info.title or _title(entry.message), stop_reason="unfinished")
        case AssistantEntry() | StartedEntry() | ToolEntry() | AnswerEntry():
            return replace(info, stop_reason="unfinished")
        case ParkedEntry():
            return replace(info, stop_reason="parked")
        case EndEntry():
            tokens, cost = entry.last_call_usage.context, entry.usage.cost_usd or 0.0
            return replace(info, model=entry.model, tokens=tokens, stop_reason=entry.stop_reason, cost_usd=cost)
        case _:
            return info


def _read_beginning(file: BinaryIO) -> tuple[SessionEntry | None, str]:
    """The header, and the title: what the user said first, without what a host adds, such as the form of an answer."""
    header = None
    for _ in range(_FIRST_LINES):
        match _entry(line := file.readline(_FURTHEST)):
            case SessionEntry() as header:
                pass
            case UserEntry(message=message) if title := _title(message):
                return header, title
            case None if not line:
                break
    return header, ""


def _title(message: UserMessage) -> str:
    first = next((part.text for part in message.content if isinstance(part, Text) and part.text.strip()), "")
    words = "".join(filter(str.isprintable, " ".join(first[: 4 * _TITLE].split())))
    return words if len(words) <= _TITLE else words[: _TITLE - 1] + "…"


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
