"""What goes with a message: piped input, `@path`, `--image FILE`."""

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from denizen.errors import ConfigError
from denizen.messages import Image, Text, UserPart

MOST_BYTES = 10_000_000
"""Bytes of one attachment."""

_CHUNK = 1_000_000
_MENTION = re.compile(r'(?<!\S)@(?:"([^"]+)"|(\S+))')
_MAGIC = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}


def compose(text: str, workspace: Path, images: Sequence[Path] = (), piped: bytes = b"") -> list[UserPart]:
    """The parts of a message: its words, the files that it mentions, the images, the piped input.

    Files have the names by which tools know them: those in the workspace from there on, others from the root on.
    Raises ConfigError for a file that can't be used, and for a message of nothing.
    """
    parts: list[UserPart] = [Text(text)] if text.strip() else []
    found = filter(None, map(_file, _mentioned(text)))
    parts += [_attached(path, workspace) for path in dict.fromkeys(found)]
    parts += [_image(path) for path in images]
    if piped.strip():
        parts.append(_piped(piped, alone=not parts))
    if not parts:
        raise ConfigError(
            'There is no message. Say in words what to do, as in "What language is this project?", or pipe it in.'
        )
    return parts


def unattached(text: str) -> list[str]:
    """Notices about mentions that look like paths and name no file."""
    names = [names[-1] for names in _mentioned(text) if _file(names) is None]
    like_paths = [name for name in dict.fromkeys(names) if "/" in name or Path(name).suffix]
    return [f"@{name} names no file: nothing is attached for it." for name in like_paths]


def read_piped(stream: TextIO) -> bytes:
    """All of standard input where it is a pipe or a file; nothing where it is a terminal or another device.

    Raises ConfigError when it is too long.
    """
    mode = os.fstat(stream.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
        return b""
    data = b""
    while len(data) <= MOST_BYTES and (more := os.read(stream.fileno(), _CHUNK)):  # Ctrl-C is heard between pieces
        data += more
    return _whole(data, "The piped input")


def _mentioned(text: str) -> Iterator[tuple[str, str]]:
    """What the words mention, as it stands there and without the punctuation behind it."""
    for quoted, plain in _MENTION.findall(text):
        yield quoted or plain, (quoted or plain).rstrip(",;:.?!)")


def _file(names: tuple[str, str]) -> Path | None:
    """The file that a mention names; None: it was no mention."""
    for name in dict.fromkeys(names):
        with contextlib.suppress(OSError, RuntimeError):  # a name that is too long; a user that there isn't
            path = Path(name).expanduser()
            if path.is_file():
                return path
    return None


def _attached(path: Path, workspace: Path) -> UserPart:
    data = _read(path)
    kind = _kind(data)
    if kind:
        return Image(kind, data)
    name = os.path.normpath(Path.cwd() / path).removeprefix(f"{workspace}/")
    return Text(f'\n\n<file path="{name}">\n{_text(data, str(path), "Leave out the @ to name it only.")}\n</file>')


def _piped(data: bytes, *, alone: bool) -> UserPart:
    kind = _kind(data)
    if kind:
        return Image(kind, data)
    text = _text(data, "The piped input", "Name a file, and let the agent look at it.")
    return Text(text if alone else f"\n\n<stdin>\n{text}\n</stdin>")


def _text(data: bytes, what: str, instead: str) -> str:
    if b"\0" in data[:8192]:
        raise ConfigError(f"{what} is neither text nor a picture (png, jpeg, gif, webp). {instead}")
    return data.decode("utf-8", "replace")


def _image(path: Path) -> Image:
    data = _read(path)
    kind = _kind(data)
    if not kind:
        raise ConfigError(f"{path} is no picture that models can see: png, jpeg, gif or webp.")
    return Image(kind, data)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _whole(file.read(MOST_BYTES + 1), str(path))
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}.") from error


def _whole(data: bytes, what: str) -> bytes:
    if len(data) > MOST_BYTES:
        raise ConfigError(
            f"{what} is longer than {MOST_BYTES // 1_000_000} MB. Name a file, and let the agent read parts."
        )
    return data


def _kind(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), "")
