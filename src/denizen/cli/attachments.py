"""What goes with a message: piped input, `@path`, `--image FILE`."""

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


def compose(text: str, images: Sequence[Path] = (), piped: str = "") -> list[UserPart]:
    """The parts of a message: its words, the files that it mentions, the images, the piped input.

    Raises ConfigError for a file that can't be used, and for a message of nothing.
    """
    parts: list[UserPart] = [Text(text)] if text.strip() else []
    parts += [_attached(path) for path in dict.fromkeys(_mentioned(text))]
    parts += [_image(path) for path in images]
    if piped.strip():
        parts.append(Text(f"\n\n<stdin>\n{piped}\n</stdin>" if parts else piped))
    if not parts:
        raise ConfigError('There is no message. Give one: denizen ask "What language is this project?", or pipe it in.')
    return parts


def read_piped(stream: TextIO) -> str:
    """All of standard input where it is a pipe or a file; nothing where it is a terminal or another device.

    Raises ConfigError when it is too long.
    """
    mode = os.fstat(stream.fileno()).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)):
        return ""
    data = b""
    while len(data) <= MOST_BYTES and (more := os.read(stream.fileno(), _CHUNK)):  # Ctrl-C is heard between pieces
        data += more
    return _whole(data, "The piped input").decode("utf-8", "replace")


def _mentioned(text: str) -> Iterator[Path]:
    """The files that the words name: what isn't there, and what is no file, was no mention."""
    for quoted, plain in _MENTION.findall(text):
        for name in dict.fromkeys((quoted or plain, (quoted or plain).rstrip(",;:.?!)"))):
            try:
                path = Path(name).expanduser()
                if path.is_file():
                    yield path
                    break
            except (OSError, RuntimeError):  # a name that is too long; a user that there isn't
                continue


def _attached(path: Path) -> UserPart:
    data = _read(path)
    kind = _kind(data)
    if kind:
        return Image(kind, data)
    if b"\0" in data[:8192]:
        raise ConfigError(
            f"{path} is neither text nor a picture (png, jpeg, gif, webp). Leave out the @ to name it only."
        )
    return Text(f'\n\n<file path="{path}">\n{data.decode("utf-8", "replace")}\n</file>')


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
