"""Reads a transcript from bytes that may be torn, damaged, or newer than this program."""

import typing
from collections.abc import Iterator

import msgspec

from denizen.entries import AnyEntry, SessionEntry
from denizen.errors import SessionError
from denizen.sessions.transcript import Transcript

VERSION = 1
"""The format that is written, and the newest that is read."""

ENTRY = msgspec.json.Decoder(AnyEntry)
"""Decodes one line, or all."""
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a damaged line raises."""

_BOM = b"\xef\xbb\xbf"
_TYPES = frozenset(entry.__struct_config__.tag for entry in typing.get_args(AnyEntry))


class _Header(msgspec.Struct):
    type: str
    version: int


class _Link(msgspec.Struct):
    """What the tree needs of an entry whose content can't be read."""

    type: str
    id: str
    parent: str = ""


class Extent(msgspec.Struct, frozen=True):
    """How far a file is a transcript: `size` bytes; `unfinished`: the last of its lines lacks its end.

    What follows is `torn`: the beginning of a line whose writing was cut off, or zeros that a power failure left.
    """

    size: int
    unfinished: bool = False
    torn: bool = False


def extent(data: bytes) -> Extent:
    """How far `data` is a transcript."""
    end = data.rfind(b"\n") + 1
    tail = data[end:].rstrip(b"\0")
    if not tail.strip() or _truncated(tail) or _truncated(tail + b"0"):  # "0": a number may be cut after its point
        return Extent(end, torn=end < len(data))
    return Extent(end + len(tail), unfinished=True)


def load(data: bytes, session: str) -> Transcript:
    """Read a transcript. Whatever the bytes are, what can be read is, and `warnings` say what couldn't.

    Raises SessionError when it was written in a newer format.
    """
    _refuse_newer(data, session)
    transcript, reach = Transcript(), extent(data)
    body = data[: reach.size].removeprefix(_BOM)
    if not _load_sound(body, transcript):
        _load_line_by_line(body, transcript)
    if transcript.head and type(transcript.path(transcript.head)[0]) is not SessionEntry:
        transcript.warnings.insert(0, "the first line, which says what session this is, is missing")
    if reach.torn:
        transcript.warnings.append("the last line is torn, and is dropped")
    return transcript


def _truncated(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except UNREADABLE as error:
        return str(error) == "Input data was truncated"
    return False


def _refuse_newer(data: bytes, session: str) -> None:
    try:
        header = msgspec.json.decode(data.partition(b"\n")[0].removeprefix(_BOM), type=_Header)
    except UNREADABLE:
        return  # damaged, or torn: told with the rest
    if header.type == "session" and header.version > VERSION:
        raise SessionError(
            f"Session {session} was written by a newer Denizen (format {header.version}; this one reads {VERSION}). "
            "Update Denizen, or use another session."
        )


def _load_sound(body: bytes, transcript: Transcript) -> bool:
    """The fast way, for a file whose every line can be read; says whether this is one."""
    try:
        entries = ENTRY.decode_lines(body)
    except UNREADABLE:
        return False
    if len(entries) != body.count(b"\n") + (not body.endswith(b"\n")):
        return False
    for line, entry in enumerate(entries, 1):
        transcript.restore(line, entry)
    return True


def _load_line_by_line(body: bytes, transcript: Transcript) -> None:
    for number, line in _filled(body):
        try:
            entry = ENTRY.decode(line)
        except UNREADABLE as error:
            _skip(transcript, number, line, str(error).encode("unicode_escape").decode()[:160])
        else:
            transcript.restore(number, entry)


def _filled(body: bytes) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(body.split(b"\n"), 1):
        if line.strip():
            yield number, line


def _skip(transcript: Transcript, number: int, line: bytes, why: str) -> None:
    try:
        link = msgspec.json.decode(line, type=_Link)
    except UNREADABLE:
        transcript.skip(number, f"it can't be read, and is left out ({why})")
        return
    if link.type not in _TYPES:
        why = f"its type {link.type!r:.80} is unknown to this version"
    transcript.skip(number, f"it is left out: {why}", link.id, link.parent)
