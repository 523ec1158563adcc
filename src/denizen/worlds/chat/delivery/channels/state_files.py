"""Small files that store a channel's reading progress."""

import logging
from pathlib import Path
from typing import TypeVar

import msgspec

from denizen.config.files import read_file, write_private
from denizen.config.home import private_folder

_MAX_BYTES = 10_000_000
_StructT = TypeVar("_StructT", bound=msgspec.Struct)
_log = logging.getLogger(__name__)


def read_state(path: Path, kind: type[_StructT]) -> _StructT | None:
    """The struct in a file; None if it is missing or, with a warning in the log, damaged."""
    try:
        data = read_file(path, _MAX_BYTES)
        return None if data is None else msgspec.json.decode(data, type=kind)
    except (OSError, msgspec.DecodeError) as error:
        _log.warning("%s can't be read, and is replaced: %s", path, error)
        return None


def write_state(path: Path, state: msgspec.Struct, *, sync: bool = True) -> None:
    """Write the file atomically and privately; without `sync` a machine crash may lose the change."""
    private_folder(path.parent)
    write_private(path, msgspec.json.encode(state), sync=sync)
