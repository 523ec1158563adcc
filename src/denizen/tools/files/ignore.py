"""What git ignores: the `.gitignore` of a folder and of those above it, and `.git/info/exclude`."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from denizen.errors import ToolRefused
from denizen.tools.files.glob import Glob
from denizen.tools.files.place import Place
from denizen.tools.files.workspace import Workspace

LARGEST = 1_000_000
"""Bytes of a file of patterns that are read."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A line: what it matches is ignored, or with `keeps` not ignored after all."""

    glob: Glob
    keeps: bool


@dataclass(frozen=True, slots=True)
class Ignored:
    """The rules in force in a folder that is `depth` below the top: its own, then those `above` it."""

    rules: Sequence[Rule] = ()
    depth: int = 0
    above: "Ignored | None" = None

    def hides(self, names: Sequence[str], *, is_folder: bool) -> bool:
        """Whether the entry is ignored by itself; that a folder above it may be is not looked at."""
        level: Ignored | None = self
        while level:
            for rule in level.rules:
                if rule.glob.matches(names[level.depth :], is_folder=is_folder):
                    return not rule.keeps
            level = level.above
        return False

    def within(self, place: Place, depth: int) -> "Ignored":
        """The rules in force in the folder that the `.gitignore` at `place` is in."""
        rules = _read(place)
        return Ignored(rules, depth, self) if rules else self


def ignored_above(workspace: Workspace, names: Sequence[str] | None) -> Ignored:
    """The rules in force in the folder `names` of the workspace, but for its own. None: it is outside."""
    if names is None:
        return Ignored()
    with workspace.at(".") as root:
        ignored = Ignored().within(Place(root.fd, ".git/info/exclude"), 0)
    for depth in range(len(names)):
        with suppress(ToolRefused), workspace.at("/".join([".", *names[:depth], ".gitignore"])) as place:
            ignored = ignored.within(place, depth)
    return ignored


def _read(place: Place) -> list[Rule]:
    """The rules of a file, the last first: it is the last that counts. None where it can't be read, or isn't a file."""
    with suppress(OSError, ToolRefused), place.open() as file:
        return list(_rules(file.read(LARGEST).decode("utf-8-sig", "surrogateescape")))[::-1]
    return []


def _rules(text: str) -> Iterator[Rule]:
    for line in text.split("\n"):
        line = _trimmed(line.removesuffix("\r"))
        pattern = line.removeprefix("!")
        if pattern.strip("/") and not line.startswith("#"):
            yield Rule(Glob(pattern), keeps=line.startswith("!"))


def _trimmed(line: str) -> str:
    """The line without blanks at its end, but for one that is escaped."""
    bare = line.rstrip(" ")
    escaped = (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
    return f"{bare} " if escaped and len(bare) < len(line) else bare
