"""Files that channels receive and send."""

import asyncio
import re
import stat
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from denizen.config.files import write_private
from denizen.config.home import private_folder
from denizen.ports import ChannelHome, ChannelLimits, Fetch, InboundMessage, OutboundMessage

_UNSAFE_IN_NAME = re.compile(r"[^\w.-]")
_MAX_NAME_CHARS = 80
Received = tuple[InboundMessage, Fetch | None]
"""A message and the download of its files, if it has any: the arguments of `accept`."""


async def save_media(home: ChannelHome, identifier: str, name: str, data: bytes) -> str:
    """Save a received file privately, and return its path. The service's identifier makes the name unique."""
    path = home.folder / "media" / f"{identifier}-{_UNSAFE_IN_NAME.sub('_', name)[-_MAX_NAME_CHARS:]}"
    private_folder(path.parent)
    await asyncio.to_thread(write_private, path, data)
    return str(path)


def prune_received(home: Path, *, before: float, kept: Collection[str]) -> None:
    """Remove files that channels received before a time, and mail threads that ended before it, except those `kept`."""
    for path in (*home.glob("channels/*/media/*"), *home.glob("channels/*/threads/*")):
        with suppress(OSError):
            if str(path) not in kept and path.stat().st_mtime < before:
                path.unlink()


def with_files(message: InboundMessage, paths: Sequence[str], notes: Sequence[str]) -> InboundMessage:
    """The message with the paths of its saved files, and with notes in its text."""
    content = "\n".join((message.content, *notes)).strip()
    return msgspec.structs.replace(message, content=content, media=tuple(paths))


def not_received(name: str, why: str) -> str:
    """The line for the agent about a file that wasn't saved."""
    return f"[The file {name} was not received: {why}.]"


def too_large(limits: ChannelLimits) -> str:
    """Why a file of more than `media_in` bytes isn't received."""
    return f"it is larger than {limits.media_in:,} bytes"


def media_refusal(message: OutboundMessage, limits: ChannelLimits) -> str:
    """Why the files of a message can't be sent; empty if they can."""
    if message.media and not limits.media_out:
        return "This channel sends no files."
    for path in message.media:
        try:
            status = Path(path).stat()
        except OSError as error:
            return f"{path} can't be read: {error.strerror}."
        if not stat.S_ISREG(status.st_mode):
            return f"{path} can't be read: it isn't a file."
        if status.st_size > limits.media_out:
            return f"{path} is larger than {limits.media_out:,} bytes."
    return ""
