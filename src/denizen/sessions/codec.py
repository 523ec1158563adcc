"""Entries as lines of JSON: written without secrets, read from bytes that may be torn, damaged, or newer than us."""

import contextlib
import typing
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from denizen.config.redact import Redactor, map_text, whole_characters
from denizen.entries import AnyEntry, SessionEntry
from denizen.errors import SessionError
from denizen.sessions.tree import EntryTree

VERSION = 1
"""The format that this version writes, and the newest that it reads."""
ENTRY = msgspec.json.Decoder(AnyEntry)
"""Decodes one line, or all."""
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of decoding a damaged line."""

ENCODER = msgspec.json.Encoder(enc_hook=repr)  # a tool's details may hold anything
_BOM = b"\xef\xbb\xbf"
_TYPES = frozenset(entry.__struct_config__.tag for entry in typing.get_args(AnyEntry))


class _Header(msgspec.Struct):
    type: str
    version: int


class _Link(msgspec.Struct):
    """The place in the tree of an entry whose content can't be read."""

    type: str
    id: str
    parent: str = ""


class TranscriptExtent(NamedTuple):
    """The readable part of a file: its first `size` bytes. `unfinished`: its last line has no line break.

    `torn`: bytes follow that are the beginning of an interrupted line, or zeros left by a power failure.
    """

    size: int
    unfinished: bool = False
    torn: bool = False


def encode(entry: AnyEntry, redactor: Redactor) -> tuple[bytes, AnyEntry]:
    """The line of an entry, without secrets, and the entry that loading that line gives.

    Raises SessionError for an entry that JSON can't express.
    """
    try:
        try:
            line = ENCODER.encode(entry)
        except UnicodeEncodeError:  # half a character, as in a file name that isn't UTF-8
            entry = map_text(entry, whole_characters)
            line = ENCODER.encode(entry)
        if redactor.found_in(line):
            entry = redactor.value(ENTRY.decode(line))
            line = ENCODER.encode(entry)
    except (TypeError, ValueError, RecursionError) as error:
        kind = entry.__struct_config__.tag
        raise SessionError(f"The entry {kind!r} can't be written as JSON: {error}. It is not recorded.") from error
    return line + b"\n", entry


def decode_entries(lines: Iterable[bytes]) -> Iterator[AnyEntry]:
    """The entries of these lines; damaged lines are skipped."""
    for line in lines:
        with contextlib.suppress(*UNREADABLE):
            yield ENTRY.decode(line)


def extent(data: bytes) -> TranscriptExtent:
    """The readable part of `data`."""
    end = data.rfind(b"\n") + 1
    tail = data[end:].rstrip(b"\0")
    if not tail.strip() or _is_cut(tail) or _is_cut(tail + b"0"):  # "0": a number may be cut after its point
        return TranscriptExtent(end, torn=end < len(data))
    return TranscriptExtent(end + len(tail), unfinished=True)


def load(data: bytes, session: str) -> EntryTree:
    """Read a transcript. Any bytes load; the tree's `warnings` list what couldn't be read.

    Raises SessionError when it was written in a newer format.
    """
    header = None
    with contextlib.suppress(*UNREADABLE):  # damaged, or torn: reported with the rest
        header = msgspec.json.decode(data.partition(b"\n")[0].removeprefix(_BOM), type=_Header)
    if header and header.type == "session" and header.version > VERSION:
        raise SessionError(
            f"Session {session} was written by a newer Denizen (format {header.version}; this one reads {VERSION}). "
            "Update Denizen, or use another session."
        )
    tree, reach = EntryTree(), extent(data)
    body = data[: reach.size].removeprefix(_BOM)
    entries: list[AnyEntry] = []
    with contextlib.suppress(*UNREADABLE):  # this is fast, and nearly always enough
        entries = ENTRY.decode_lines(body)
    if len(entries) == body.count(b"\n") + (not body.endswith(b"\n")):
        for number, entry in enumerate(entries, 1):
            tree.restore(number, entry)
    else:
        _load_line_by_line(body, tree)
    if tree.head and type(tree.path(tree.head)[0]) is not SessionEntry:
        tree.warnings.insert(0, "the first line, which says what session this is, is missing")
    if reach.torn:
        tree.warnings.append("the last line is torn, and is dropped")
    return tree


def _is_cut(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except UNREADABLE as error:
        return str(error) == "Input data was truncated"
    return False


def _load_line_by_line(body: bytes, tree: EntryTree) -> None:
    for number, line in enumerate(body.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            entry = ENTRY.decode(line)
        except UNREADABLE as error:
            why = str(error).encode("unicode_escape").decode()[:160]
            try:
                link = msgspec.json.decode(line, type=_Link)
            except UNREADABLE:
                tree.skip(number, f"it can't be read, and is left out ({why})")
                continue
            if link.type not in _TYPES:
                why = f"its type {link.type!r:.80} is unknown to this version"
            tree.skip(number, f"it is left out: {why}", link.id, link.parent)
        else:
            tree.restore(number, entry)
