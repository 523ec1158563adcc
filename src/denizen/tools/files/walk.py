"""Everything below a folder in the order of its names, without what git ignores, and never through a link."""

import os
import threading
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field

from denizen.tools.files.ignore import Ignored, ignored_above
from denizen.tools.files.place import FOLDER, Place
from denizen.tools.files.text import printable
from denizen.tools.files.workspace import Workspace

MOST_NAMED = 10
"""Names in a message."""
MOST_DEEP = 400
"""Folders in each other that are gone into: each is held open, and a process may hold only so many."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something found: its names below where the walk began, and the folder it is in, open until the walk goes on."""

    names: Sequence[str]
    folder: int
    is_folder: bool
    is_file: bool


@dataclass(slots=True)
class Passed:
    """What a walk passed over: how many entries git ignores, how many are denied, and what can't be read, and why."""

    ignored: int = 0
    denied: int = 0
    unread: list[str] = field(default_factory=list)

    def notes(self, *, nothing_found: bool) -> str:
        """What has to be said of it; what is ignored only where nothing was found, as it may be there."""
        notes: list[str] = []
        if nothing_found and self.ignored:
            notes.append(f"\n[not searched, because git ignores them: {self.ignored}]")
        if self.denied:
            notes.append(f"\n[left out, because the user's policy denies them: {self.denied}]")
        if self.unread:
            more = ", …" if len(self.unread) > MOST_NAMED else ""
            notes.append(f"\n[not read: {', '.join(self.unread[:MOST_NAMED])}{more}]")
        return "".join(notes)


@dataclass(frozen=True, slots=True)
class _Level:
    """A folder on the way, its names from the top of the workspace, and what is left of it."""

    fd: int
    names: Sequence[str]
    ignored: Ignored
    rest: "Iterator[os.DirEntry[str]]"


def walk(workspace: Workspace, path: str, passed: Passed, stop: threading.Event) -> Generator[Entry]:
    """Everything below the folder `path`, until `stop` is set. Raises ToolRefused for what isn't a folder."""
    with workspace.at(path) as place, place.folder() as fd:
        top = place.names or []
        borders, base = workspace.borders, workspace.names(place)
        private = borders.private_below(place.address)
        levels = [_level(os.dup(fd), top, ignored_above(workspace, place.names))]
        try:
            while levels and not stop.is_set():
                found = next(levels[-1].rest, None)
                if found is None:
                    os.close(levels.pop().fd)
                    continue
                below = [*levels[-1].names[len(top) :], found.name]
                if borders.denies([*base, *below], lambda entry=found: entry.stat(follow_symlinks=False)):
                    passed.denied += 1
                elif below != private:
                    yield from _visit(levels, found, len(top), passed)
        finally:
            for level in levels:
                os.close(level.fd)


def path_below(folder: str, names: Sequence[str]) -> str:
    """The path of an entry for people and models."""
    return printable("/".join(names if folder == "." else [folder.rstrip("/"), *names]))


def list_folder(fd: int) -> "list[os.DirEntry[str]]":
    """What is in an open folder, by name."""
    with os.scandir(fd) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _visit(levels: list[_Level], found: "os.DirEntry[str]", top: int, passed: Passed) -> Iterator[Entry]:
    level = levels[-1]
    names = (*level.names, found.name)
    is_folder = found.is_dir(follow_symlinks=False)
    if found.name == ".git":
        return
    if level.ignored.hides(names, is_folder=is_folder):
        passed.ignored += 1
        return
    yield Entry(names[top:], level.fd, is_folder, found.is_file(follow_symlinks=False))
    if is_folder and len(levels) == MOST_DEEP:
        passed.unread.append(f"{printable('/'.join(names))} (more than {MOST_DEEP} folders deep)")
    elif is_folder:
        try:
            levels.append(_level(os.open(found.name, FOLDER, dir_fd=level.fd), names, level.ignored))
        except OSError as error:
            passed.unread.append(f"{printable('/'.join(names))} ({error.strerror})")


def _level(fd: int, names: Sequence[str], above: Ignored) -> _Level:
    try:
        entries = list_folder(fd)
    except OSError:
        os.close(fd)
        raise
    return _Level(fd, names, above.within(Place(fd, ".gitignore"), len(names)), iter(entries))
