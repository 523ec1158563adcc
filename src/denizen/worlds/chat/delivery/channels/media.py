"""Files that channels receive and send."""

import re
from pathlib import Path

from denizen.config.files import write_private
from denizen.config.home import private_folder
from denizen.ports import ChannelHome, ChannelLimits, OutboundMessage

_UNSAFE_IN_NAME = re.compile(r"[^\w.-]")
_MAX_NAME_CHARS = 80


def save_media(home: ChannelHome, identifier: str, name: str, data: bytes) -> str:
    """Save a received file, for the user alone, and return its path. The service's identifier keeps it apart."""
    path = home.folder / "media" / f"{identifier}-{_UNSAFE_IN_NAME.sub('_', name)[-_MAX_NAME_CHARS:]}"
    private_folder(path.parent)
    write_private(path, data)
    return str(path)


def media_refusal(message: OutboundMessage, limits: ChannelLimits) -> str:
    """Why a file of a message can't be sent; empty if all can."""
    for path in message.media:
        try:
            if Path(path).stat().st_size > limits.media_out:
                return f"{path} is larger than {limits.media_out:,} bytes."
        except OSError as error:
            return f"{path} can't be read: {error.strerror}."
    return ""
