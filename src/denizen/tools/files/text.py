"""Text of files: encoding, byte order mark and line ends are detected, kept and put back."""

import codecs
import io
import threading
from collections.abc import Iterator

import msgspec

from denizen.config.pattern import pattern
from denizen.errors import ToolRefused
from denizen.text.plural import counted

_BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_CHUNK_BYTES = 1 << 16
_HEAD_BYTES = 8192  # bytes that tell whether a file is text, as in git
_BROKEN = pattern("[\udc80-\udcff]")


class Encoding(msgspec.Struct, frozen=True):
    """How a file's text is written. Invalid bytes are written back unchanged.

    `latin-1` is used for any encoding with one byte per character.
    """

    name: str = "utf-8"
    mark: bytes = b""
    broken: bool = False

    def encode(self, text: str, path: str) -> bytes:
        """The bytes of the text. Raises ToolRefused for characters that the encoding doesn't have."""
        try:
            return self.mark + text.encode(self.name, "surrogateescape" if self.broken else "strict")
        except UnicodeEncodeError as error:
            character = ascii(error.object[error.start])
            raise ToolRefused(f"{path} is written in {self.name}, which has no {character}") from error


def decode(data: bytes) -> tuple[str, Encoding] | None:
    """The text of a whole file and its encoding; None for binary data."""
    mark = next((mark for mark in _BYTE_ORDER_MARKS if data.startswith(mark)), b"")
    encoding = Encoding(_BYTE_ORDER_MARKS.get(mark, "utf-8"), mark)
    try:
        text = data[len(mark) :].decode(encoding.name)
    except UnicodeDecodeError:
        text, encoding = data.decode("utf-8", "surrogateescape"), Encoding(broken=True)
        if _BROKEN.sub("", text).isascii():  # text in other encodings almost never looks like UTF-8
            text, encoding = data.decode("latin-1"), Encoding("latin-1")
    return None if "\0" in text else (text, encoding)


def open_text(file: io.BufferedReader) -> io.TextIOWrapper | None:
    """A file as text to be read piece by piece, a surrogate for each invalid byte; None for binary data."""
    head = file.peek(_HEAD_BYTES)[:_HEAD_BYTES]
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return io.TextIOWrapper(file, "utf-16", errors="replace", newline="\n")
    return None if b"\0" in head else io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="\n")


def lines_of(text: io.TextIOWrapper, longest: int, stop: threading.Event) -> Iterator[tuple[str, bool]]:
    """The lines without their ends until `stop` is set, each cut to the length `longest`, and whether it was.

    What is cut off is skipped, never held in memory.
    """
    while not stop.is_set() and (piece := text.readline(longest + 1)):
        cut = len(piece) > longest and not piece.endswith("\n")
        yield piece[:longest].rstrip("\r\n"), cut
        while cut and not stop.is_set() and piece and not piece.endswith("\n"):
            piece = text.readline(_CHUNK_BYTES)


def readable(text: str) -> tuple[str, int]:
    """The text with a replacement character for each byte that couldn't be decoded, and their number."""
    return _BROKEN.subn("\ufffd", text)


def printable(name: str) -> str:
    """A file name that is safe to show: unprintable characters are replaced."""
    return name if name.isprintable() else "".join(each if each.isprintable() else "\ufffd" for each in name)


def size(count: int) -> str:
    """A number of bytes for people: `340 bytes`, `1.2 MB`."""
    for factor, unit in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return counted(count, "byte")
