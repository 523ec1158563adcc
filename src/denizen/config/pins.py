"""Pins: others' work as the user accepted it at first use, kept in the home to detect changes."""

import hashlib
import os
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from denizen.config.files import read_file, write_private
from denizen.config.home import private_folder
from denizen.errors import ConfigError

P = TypeVar("P")

MAX_BYTES: Final = 16_000_000
"""Bytes of a pin."""


class _PinFile(msgspec.Struct, frozen=True):
    sha256: str
    pin: msgspec.Raw


class Pins(Generic[P]):
    """Pins of one kind, a private file each in a folder."""

    def __init__(self, folder: Path, kind: type[P]) -> None:
        self._folder = folder
        self._kind = kind

    def read(self, name: str) -> P | None:
        """The pin of that name, or None. Raises ConfigError if it is damaged or was changed by hand."""
        path = self._path(name)
        try:
            if (data := read_file(path, MAX_BYTES)) is None:
                return None
            file = msgspec.json.decode(data, type=_PinFile)
            if hashlib.sha256(file.pin).hexdigest() == file.sha256:
                return msgspec.json.decode(file.pin, type=self._kind)
            error: Exception | str = "it was changed"
        except (OSError, msgspec.DecodeError) as damage:
            error = damage
        raise ConfigError(
            f"{path} can't be read: {error}. Check what it pins: if you remove it, the present contents count."
        )

    def write(self, name: str, pin: P, *, sync: bool = True) -> None:
        """Keep a pin. Raises ConfigError when it can't be written. Without `sync` the machine's death may undo it."""
        data = msgspec.json.encode(pin)
        private_folder(self._folder)
        file = _PinFile(hashlib.sha256(data).hexdigest(), msgspec.Raw(data))
        encoded = msgspec.json.encode(file)
        if len(encoded) >= MAX_BYTES:
            raise ConfigError(f"{self._path(name)} can't be written: it would be too large to read back.")
        write_private(self._path(name), encoded, sync=sync)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"


def pin_name(place: Path) -> str:
    """The name of a file's or folder's pin: its name, for people, and a hash of its path."""
    return f"{place.name[:40]}-{hashlib.sha256(os.fsencode(place)).hexdigest()[:12]}"
