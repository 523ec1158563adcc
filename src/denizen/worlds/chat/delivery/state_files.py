"""Small files with the state of channels and of the gateway, as JSON."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from denizen.config.files import read_file, write_private
from denizen.config.home import private_folder
from denizen.errors import ConfigError
from denizen.runtime.clock import Clock

_MAX_BYTES = 10_000_000
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


def read_state(path: Path, kind: type[_T]) -> _T | None:
    """The state in a file; None if it is missing or, with a warning in the log, damaged."""
    try:
        data = read_file(path, _MAX_BYTES)
        return None if data is None else msgspec.json.decode(data, type=kind)
    except (OSError, msgspec.DecodeError) as error:
        _log.warning("%s can't be read, and is replaced: %s", path, error)
        return None


def write_state(path: Path, state: object, *, sync: bool = True) -> None:
    """Write the file atomically and privately; without `sync` a machine crash may lose the change."""
    private_folder(path.parent)
    write_private(path, msgspec.json.encode(state), sync=sync)


async def write_changes(
    path: Path, changed: asyncio.Event, state: Callable[[], object], *, clock: Clock, interval_s: float
) -> None:
    """Write the state soon after each change, at most once in an interval, until cancelled; then the last change."""
    written_at = float("-inf")
    try:
        while True:
            await changed.wait()
            if (rest := written_at + interval_s - clock.monotonic()) > 0:
                await clock.sleep(rest)
            changed.clear()
            written_at = clock.monotonic()
            try_to_write(path, state())
    finally:
        if changed.is_set():
            try_to_write(path, state())


def try_to_write(path: Path, state: object) -> None:
    """Write the file, or log why it can't be written: messages still work."""
    try:
        write_state(path, state, sync=False)
    except ConfigError as error:
        _log.warning("%s", error)
