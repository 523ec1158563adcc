"""Checks of what commands did: each is pending, on disk, from before the command runs until it is done.

If the process that must do one dies, whatever runs next with the same home does it first.
"""

import fcntl
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from denizen.config.files import write_private
from denizen.config.home import private_folder, sole_writer
from denizen.config.lock_file import holder_of, lock
from denizen.text.printable import printable

if TYPE_CHECKING:
    from denizen.trusted.guard import Guard

_Kind = TypeVar("_Kind")
_FOLDER = "commands"
_UNCHECKED = "Files that it left, such as git hooks or .envrc, may run by themselves: look before you work there."


class _Note(msgspec.Struct, frozen=True):
    """A command's workspace, and what was there before."""

    workspace: str
    before: Any


class PendingNote:
    """Says on disk, in the file `note` in a folder, that a check is pending; its owner holds a lock while it lives.

    Raises ConfigError if the folder can't be written.
    """

    def __init__(self, folder: Path, what: object) -> None:
        private_folder(folder)
        self.note = folder / f"{os.urandom(8).hex()}.json"
        self._lock = lock(_owner_lock(self.note), "")
        text = json.dumps(msgspec.to_builtins(what))  # which takes names that aren't UTF-8
        write_private(self.note, text.encode(), sync=False)

    def __del__(self) -> None:
        if hasattr(self, "_lock"):
            os.close(self._lock)


class PendingCheck(PendingNote):
    """A check with `guard`, pending from now on. `note` is locked while the command runs, too."""

    def __init__(self, home: Path, guard: "Guard") -> None:
        self._guard = guard
        self._before = guard.before()
        super().__init__(home / _FOLDER, _Note(str(guard.workspace), self._before))

    def run(self) -> str:
        """Check, once the command has ended, and remove the note; what was found, for the user and the model."""
        with suppress(FileNotFoundError), self.note.open("rb") as file:  # an editor may have killed only the outermost
            fcntl.flock(file, fcntl.LOCK_EX)
        found = self._guard.after(self._before)
        remove_note(self.note)
        return found


def run_pending_checks(home: Path, environ: Mapping[str, str]) -> str:
    """Run the checks whose process died before it did; what was found, for the user and the model.

    Waits until their commands have ended.
    """
    orphaned = orphaned_notes(home / _FOLDER)
    if not orphaned:
        return ""
    found: list[str] = []
    with sole_writer(home):
        for path in orphaned:
            with suppress(FileNotFoundError), path.open("rb") as file:  # somebody else has done it just now
                fcntl.flock(file, fcntl.LOCK_EX)  # the command's supervisor has it, and ends when its parent dies
                found += filter(None, [_run_check(file.read(), environ)])
                remove_note(path)
    return " ".join(found)


def _run_check(data: bytes, environ: Mapping[str, str]) -> str:
    from denizen.trusted.guard import Guard

    note, words = read_note(data, _Note), ""
    if not note:
        return f"A command ran when Denizen was killed, and the note of it is damaged. {_UNCHECKED}"
    try:
        if Path(note.workspace).is_dir():
            words = Guard(Path(note.workspace), set(), environ).after(note.before).strip("[]")
    except Exception as error:  # noqa: BLE001 (the next command must be able to run, whatever this one left)
        words = f"the check failed ({error}). {_UNCHECKED}"
    return words and printable(f"A command that ran in {note.workspace} when Denizen was killed: {words}")


def read_note(data: bytes, kind: type[_Kind]) -> _Kind | None:
    """The note that these bytes are; None if they are damaged, as after a power failure."""
    try:
        return msgspec.convert(json.loads(data), kind)
    except (ValueError, msgspec.ValidationError):
        return None


def await_commands(home: Path) -> None:
    """Wait until commands have ended whose process died."""
    for path in orphaned_notes(home / _FOLDER):
        with suppress(FileNotFoundError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)


def has_pending_checks(home: Path) -> bool:
    """Whether a process died before it did its check."""
    return bool(orphaned_notes(home / _FOLDER))


def orphaned_notes(folder: Path) -> list[Path]:
    """The notes in a folder whose owner died."""
    return [note for note in folder.glob("*.json") if not is_owned(note)]


def is_owned(note: Path) -> bool:
    """Whether the process that must do the note's check lives."""
    return bool(holder_of(_owner_lock(note)))


def remove_note(note: Path) -> None:
    """Remove a note whose check is done, and its lock."""
    note.unlink(missing_ok=True)
    _owner_lock(note).unlink(missing_ok=True)


def _owner_lock(note: Path) -> Path:
    """The lock that a note's owner holds while it lives."""
    return note.with_suffix(".lock")
