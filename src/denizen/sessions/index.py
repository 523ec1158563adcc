"""A line of the index, taken from the beginning and the end of a session's file."""

import contextlib
import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, BinaryIO, NamedTuple

import msgspec
from msgspec.structs import replace

from denizen.config.pattern import pattern
from denizen.entries import (
    EARLIER,
    AnswerEntry,
    AnyEntry,
    AssistantEntry,
    EndEntry,
    ParkedEntry,
    SessionEntry,
    StartedEntry,
    StateEntry,
    ToolEntry,
    UserEntry,
)
from denizen.messages import Text, UserMessage
from denizen.ports import SessionInfo, SessionStore, Talk
from denizen.sessions.codec import ENTRY, UNREADABLE
from denizen.sessions.key import key_of

_TAIL_BYTES = 64 * 1024  # read at first from the end of a file
_MAX_TAIL_BYTES = 64 * _TAIL_BYTES  # read to find how the last turn ended; longer lines are skipped
_MAX_HEAD_LINES = 100  # searched for the first message
_MAX_TITLE_CHARS = 80
_PAGE_SESSIONS = 50
_NEW_TALK_MARK = f'"name":"{EARLIER}","value":[{{"title":'.encode()
_TURN_ENTRY = pattern(rb'^\{"type":"(user|assistant|started|tool|parked|answer)"')


class _Stamp(msgspec.Struct):
    at: Annotated[datetime, msgspec.Meta(tz=True)]


class _Ending(NamedTuple):
    """How the last finished turn ended, when the last entry was written, and the state of a turn after it.

    `unended` is `parked` or `unfinished`; empty if no turn follows.
    """

    end: EndEntry | None
    written: datetime | None
    unended: str


def summarise(path: Path) -> SessionInfo:
    """The session's line of the index, as far as its file can be read. Raises OSError."""
    with path.open("rb") as file:
        stat = os.fstat(file.fileno())
        begins, earlier = _latest_talk(file, stat.st_size)
        header, title = _read_beginning(file, begins)
        reach = min(stat.st_size, _TAIL_BYTES)
        ending = _read_ending(os.pread(file.fileno(), reach, stat.st_size - reach))
        while not ending.end and reach < min(stat.st_size, _MAX_TAIL_BYTES):
            reach = min(8 * reach, stat.st_size, _MAX_TAIL_BYTES)
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
        earlier=earlier,
    )


def with_entry(info: SessionInfo, entry: AnyEntry, size: int) -> SessionInfo:
    """The session's line of the index after one more entry of `size` bytes."""
    updated = entry.at.timestamp() if entry.at else info.updated
    info = replace(info, updated=updated, bytes=info.bytes + size)
    match entry:
        case SessionEntry():
            return replace(info, workspace=entry.workspace, profile=entry.profile)
        case UserEntry():
            return replace(info, title=info.title or title_of(entry.message), stop_reason="unfinished")
        case StateEntry(name=name) if name == EARLIER:
            return replace(info, title="", earlier=entry.read(list[Talk]) or ())
        case AssistantEntry() | StartedEntry() | ToolEntry() | AnswerEntry():
            return replace(info, stop_reason="unfinished")
        case ParkedEntry():
            return replace(info, stop_reason="parked")
        case EndEntry():
            tokens, cost = entry.last_call_usage.context, entry.usage.cost_usd or 0.0
            return replace(info, model=entry.model, tokens=tokens, stop_reason=entry.stop_reason, cost_usd=cost)
        case _:
            return info


def _latest_talk(file: BinaryIO, size: int) -> tuple[int, Sequence[Talk]]:
    """Where the latest talk begins in the file (0: not found in its last part), and the talks before it."""
    reach = min(size, _MAX_TAIL_BYTES)
    data = os.pread(file.fileno(), reach, size - reach)
    start = data.rfind(b"\n", 0, max(data.rfind(_NEW_TALK_MARK), 0)) + 1
    entry = _entry(data[start:].partition(b"\n")[0]) if start else None
    if isinstance(entry, StateEntry) and entry.name == EARLIER:
        return size - reach + start, entry.read(list[Talk]) or ()
    return 0, ()


def _read_beginning(file: BinaryIO, begins: int) -> tuple[SessionEntry | None, str]:
    """The header, and the title of the talk that begins at that byte: the user's first message."""
    header = None
    for _ in range(_MAX_HEAD_LINES):
        match _entry(line := file.readline(_MAX_TAIL_BYTES)):
            case SessionEntry() as header:
                file.seek(max(begins, file.tell()))
            case UserEntry(message=message) if title := title_of(message):
                return header, title
            case None if not line:
                break
    return header, ""


def page_of(found: Iterable[SessionInfo], limit: int) -> Sequence[SessionInfo]:
    """A page of these sessions, as `SessionStore.page` returns it."""
    latest = sorted(found, key=lambda info: info.used, reverse=True)
    if len(latest) <= limit:
        return latest
    return [info for info in latest if info.used >= latest[:limit][-1].used]


async def each_session(store: SessionStore) -> AsyncGenerator[SessionInfo]:
    """The sessions of a store, the latest first, read page by page as they are asked for."""
    page = await store.page(_PAGE_SESSIONS)
    while page:
        for info in page:
            yield info
        page = await store.page(_PAGE_SESSIONS, page[-1].used)


def title_of(message: UserMessage) -> str:
    """A talk's title, by its first message."""
    first = next((part.text for part in message.content if isinstance(part, Text) and part.text.strip()), "")
    words = "".join(filter(str.isprintable, " ".join(first[: 4 * _MAX_TITLE_CHARS].split())))
    return words if len(words) <= _MAX_TITLE_CHARS else words[: _MAX_TITLE_CHARS - 1] + "…"


def _read_ending(data: bytes) -> _Ending:
    written = None
    unended = ""
    for line in reversed(data.split(b"\n")):
        if written is None:
            with contextlib.suppress(*UNREADABLE):
                written = msgspec.json.decode(line, type=_Stamp).at
        if b'"end"' in line and isinstance(end := _entry(line), EndEntry):
            return _Ending(end, written, unended)
        if not unended and (kind := _TURN_ENTRY.match(line)):
            unended = "parked" if kind[1] == b"parked" else "unfinished"
    return _Ending(None, written, unended)


def _entry(line: bytes) -> AnyEntry | None:
    with contextlib.suppress(*UNREADABLE):
        return ENTRY.decode(line)
    return None
