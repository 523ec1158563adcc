"""What goes with a message: piped input, `@path`, `--image FILE`."""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from denizen.config.pattern import pattern
from denizen.errors import ConfigError
from denizen.messages import Document, Image, Text, UserPart, from_outside
from denizen.text.documents import PDF, as_taken, attached_document, attached_picture, is_pdf, picture_type, read_pdf

MAX_ATTACHMENT_BYTES = 10_000_000
"""Bytes of one attachment."""

_CHUNK = 1_000_000
_MENTION = pattern(r'(?<!\S)@(?:"([^"]+)"|(\S+))')


def compose(text: str, workspace: Path, images: Sequence[Path] = (), piped: bytes = b"") -> list[UserPart]:
    """The parts of a message: its words, the files that it mentions, the images, the piped input.

    Files have the names by which tools know them: those in the workspace from there on, others from the root on.
    Raises ConfigError for a file that can't be used, and for a message of nothing.
    """
    parts: list[UserPart] = [Text(text)] if text.strip() else []
    files = [
        each if isinstance(each, Image) else attached_document(each.media_type, each.data, each.name)
        for each in attachments(text, workspace, images)
    ]
    parts += as_taken(files, (PDF,))
    if picture_type(piped):
        parts.append(from_outside(attached_picture(piped, "stdin")))
    elif is_pdf(piped):
        parts.append(from_outside(read_pdf(piped, "stdin.pdf")))
    elif piped.strip():
        words = _text(piped, "The piped input", "Name a file, and let the agent look at it.")
        parts.append(Text(f"\n\n<stdin>\n{words}\n</stdin>" if parts else words))
    if not parts:
        raise ConfigError(
            'There is no message. Say in words what to do, as in "What language is this project?", or pipe it in.'
        )
    return parts


def attachments(text: str, workspace: Path, images: Sequence[Path] = ()) -> list[Image | Document]:
    """The files that a message mentions, and the images; PDF documents aren't read yet.

    Raises ConfigError for a file that can't be used.
    """
    found: list[Image | Document] = []
    for path in dict.fromkeys(path for _, path in _mentioned(text) if path):
        data = _read(path)
        name = _name(path, workspace)
        if picture_type(data):
            found.append(attached_picture(data, name))
        elif is_pdf(data):
            found.append(Document(PDF, data, name))
        else:
            _text(data, str(path), "Leave out the @ to name it only.")
            found.append(Document("text/plain", data, name))
    return [*found, *(attached_picture(_read(path), _name(path, workspace)) for path in images)]


def unattached(text: str) -> list[str]:
    """Notices about mentions that look like paths and name no file."""
    names = dict.fromkeys(name for name, path in _mentioned(text) if path is None)
    return [f"@{name} isn't a file: nothing is attached for it." for name in names if "/" in name or Path(name).suffix]


def read_piped(stream: TextIO) -> bytes:
    """All of standard input where it is a pipe or a file; nothing if it is a terminal or another device.

    Raises ConfigError when it is too long.
    """
    mode = os.fstat(stream.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
        return b""
    data = b""
    while len(data) <= MAX_ATTACHMENT_BYTES and (
        more := os.read(stream.fileno(), _CHUNK)
    ):  # Ctrl-C works between pieces
        data += more
    return _checked(data, "The piped input")


def _mentioned(text: str) -> Iterator[tuple[str, Path | None]]:
    """What the words mention, without the punctuation after it, and the file of that name, if there is one."""
    for quoted, plain in _MENTION.findall(text):
        name = quoted or plain
        bare = name.rstrip(",;:.?!)")
        yield bare, _file(name) or _file(bare)


def _name(path: Path, workspace: Path) -> str:
    return os.path.normpath(Path.cwd() / path).removeprefix(f"{workspace}/")


def _file(name: str) -> Path | None:
    with contextlib.suppress(OSError, RuntimeError):  # a name that is too long; a user who doesn't exist
        path = Path(name).expanduser()
        return path if path.is_file() else None


def _text(data: bytes, what: str, instead: str) -> str:
    if b"\0" in data[:8192]:
        raise ConfigError(f"{what} is neither text nor a picture (png, jpeg, gif, webp) nor a PDF document. {instead}")
    return data.decode("utf-8", "replace")


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _checked(file.read(MAX_ATTACHMENT_BYTES + 1), str(path))
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}.") from error


def _checked(data: bytes, what: str) -> bytes:
    if len(data) > MAX_ATTACHMENT_BYTES:
        most = f"{MAX_ATTACHMENT_BYTES // 1_000_000} MB"
        raise ConfigError(f"{what} is longer than {most}. Name a file, and let the agent read parts.")
    return data
