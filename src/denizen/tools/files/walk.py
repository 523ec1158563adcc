"""Everything below a folder in the order of its names, without what git ignores, and never through a link.

git ignores what the `.gitignore` of a folder or of one above it says, and `.git/info/exclude`.
"""

import os
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from typing import Literal

import msgspec

from denizen.errors import ToolRefused
from denizen.tools.files.glob import Glob
from denizen.tools.files.open_path import OPEN_FOLDER, Names, OpenPath
from denizen.tools.files.text import printable
from denizen.tools.files.workspace import Workspace

MAX_NAMED = 10  # names in a message
MAX_DEPTH = 400  # levels of folders that are entered: each is held open, and a process may hold only so many
MAX_IGNORE_FILE_BYTES = 1_000_000  # bytes of a file of patterns that are read


class FoundEntry(msgspec.Struct, frozen=True):
    """An entry that a walk found: its names from the walk's start, and its folder, open until the walk goes on."""

    names: Names
    folder: int
    is_folder: bool
    is_file: bool


class SkippedEntries(msgspec.Struct):
    """Entries that a walk left out: the numbers of ignored and denied ones, and those that can't be read, and why."""

    ignored: int = 0
    denied: int = 0
    unread: list[str] = msgspec.field(default_factory=list)

    def notes(self, *, nothing_found: bool) -> str:
        """Notes on them; ignored entries are mentioned only if nothing was found: it may be among them."""
        notes = ""
        if nothing_found and self.ignored:
            notes += f"\n[not searched, because git ignores them: {self.ignored}]"
        if self.denied:
            notes += f"\n[left out, because the user's policy denies them: {self.denied}]"
        if self.unread:
            more = ", …" if len(self.unread) > MAX_NAMED else ""
            notes += f"\n[not read: {', '.join(self.unread[:MAX_NAMED])}{more}]"
        return notes


class IgnoreRules(msgspec.Struct, frozen=True):
    """The patterns of a folder that is `depth` names deep, the last first, then those in force `above` it."""

    patterns: Sequence[tuple[Glob, bool]] = ()
    depth: int = 0
    above: "IgnoreRules | None" = None

    def ignore(self, names: Names, *, is_folder: bool) -> bool:
        """Whether the entry itself is ignored, whatever holds for the folders above it."""
        rules: IgnoreRules | None = self
        while rules:
            below = names[rules.depth :]
            for glob, ignores in rules.patterns:
                if glob.matches(below, is_folder=is_folder):
                    return ignores
            rules = rules.above
        return False

    def within(self, file: OpenPath, depth: int) -> "IgnoreRules":
        """The rules in force in the folder of that `.gitignore`, which may be missing or unreadable."""
        text = ""
        with suppress(OSError, ToolRefused), file.open() as opened:
            text = opened.read(MAX_IGNORE_FILE_BYTES).decode("utf-8-sig", "surrogateescape")
        patterns: list[tuple[Glob, bool]] = []
        for line in text.split("\n"):
            line = line.removesuffix("\r")
            bare = line.rstrip(" ")
            if len(bare) < len(line) and (len(bare) - len(bare.rstrip("\\"))) % 2:
                bare += " "  # escaped, so it counts
            pattern = bare.removeprefix("!")
            if pattern.strip("/") and not bare.startswith("#"):
                patterns.append((Glob(pattern), not bare.startswith("!")))
        return IgnoreRules(patterns[::-1], depth, self) if patterns else self


def rules_in(workspace: Workspace, folder: OpenPath, fd: int) -> IgnoreRules:
    """The rules in force in a folder, which is also open as `fd`."""
    rules, depth = IgnoreRules(), len(folder.names)
    inside = workspace.inside(folder.names)
    if inside is not None:
        top = depth - len(inside)
        with workspace.at(".") as root:
            rules = rules.within(OpenPath(root.fd, ".git/info/exclude"), top)
        for length in range(len(inside)):
            with suppress(ToolRefused), workspace.at("/".join((".", *inside[:length], ".gitignore"))) as file:
                rules = rules.within(file, top + length)
    return rules.within(OpenPath(fd, ".gitignore"), depth)


def why_hidden(
    workspace: Workspace, rules: IgnoreRules, names: Names, entry: "os.DirEntry[str]"
) -> Literal["denied", "own", "ignored", ""]:
    """Why a folder's entry isn't shown: the policy denies it, it is git's or Denizen's own, or git ignores it."""
    if workspace.denies(names, lambda: entry.stat(follow_symlinks=False)):
        return "denied"
    if entry.name == ".git" or workspace.is_private(names):
        return "own"
    return "ignored" if rules.ignore(names, is_folder=entry.is_dir(follow_symlinks=False)) else ""


class _Level(msgspec.Struct, frozen=True):
    """A folder on the way down, and its entries that are left."""

    fd: int
    names: Names
    rules: IgnoreRules
    entries: "Iterator[os.DirEntry[str]]"


def walk(workspace: Workspace, path: str, skipped: SkippedEntries, stop: threading.Event) -> Generator[FoundEntry]:
    """Everything below the folder `path`, until `stop` is set. Raises ToolRefused for what isn't a folder."""
    with workspace.at(path) as folder, folder.folder() as fd:
        top = len(folder.names)
        rules, entries = rules_in(workspace, folder, fd), iter(list_folder(fd))
        levels = [_Level(os.dup(fd), folder.names, rules, entries)]
        try:
            while levels and not stop.is_set():
                level = levels[-1]
                entry = next(level.entries, None)
                if entry is None:
                    os.close(levels.pop().fd)
                    continue
                names = (*level.names, entry.name)
                why = why_hidden(workspace, level.rules, names, entry)
                skipped.denied += why == "denied"
                skipped.ignored += why == "ignored"
                if why:
                    continue
                is_folder = entry.is_dir(follow_symlinks=False)
                yield FoundEntry(names[top:], level.fd, is_folder, entry.is_file(follow_symlinks=False))
                if not is_folder:
                    continue
                if len(levels) == MAX_DEPTH:
                    skipped.unread.append(f"{workspace.shown(names)} (more than {MAX_DEPTH} folders deep)")
                    continue
                try:
                    levels.append(_enter(level, names))
                except OSError as error:
                    skipped.unread.append(f"{workspace.shown(names)} ({error.strerror})")
        finally:
            for level in levels:
                os.close(level.fd)


def list_folder(fd: int) -> "list[os.DirEntry[str]]":
    """The entries of an open folder, by name."""
    with os.scandir(fd) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def path_below(folder: str, names: Sequence[str]) -> str:
    """The path of an entry for people and models."""
    return printable("/".join(names if folder == "." else [folder.rstrip("/"), *names]))


def _enter(level: _Level, names: Names) -> _Level:
    fd = os.open(names[-1], OPEN_FOLDER, dir_fd=level.fd)
    try:
        entries = list_folder(fd)
    except OSError:
        os.close(fd)
        raise
    return _Level(fd, names, level.rules.within(OpenPath(fd, ".gitignore"), len(names)), iter(entries))
