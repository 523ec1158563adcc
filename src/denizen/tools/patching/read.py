"""Reading patches as models write them: unified diffs, git's, and the `*** Begin Patch` form.

Counts and line numbers may be wrong, headers may lack, code fences and prose may stand around it. But a line that would
change something is never passed over: where it can't be told what it belongs to, the patch is refused.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from denizen.errors import ToolRefused
from denizen.tools.patching.hunk import Hunk, begins_something, names_file, read_hunk

_HEADS = ("@@", "+++ ", "*** ")
_FENCE = re.compile(r"```|~~~")
_SECTION = re.compile(r"\*\*\* (Add|Update|Delete) File: *(\S.*)")
_GIT = re.compile(
    r"((?:old|new|new file|deleted file) mode|(?:rename|copy) (?:from|to)|(?:dis)?similarity index|index) (.*)"
)
_DATE = re.compile(r"\s+\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*")
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)")
_ESCAPES = dict(zip(b"abtnvfr", b"\a\b\t\n\v\f\r", strict=True))
_PREFIX = re.compile(r"[a-z]/.")
_NOWHERE = "/dev/null"


@dataclass(slots=True)
class FilePatch:
    """What happens to one file. `old` None: it is created; `new` None: it is deleted; `move` where they differ.

    `prefixed`: the names may begin with a letter and a slash that don't belong to them (`a/`, `b/`).
    """

    old: str | None
    new: str | None
    prefixed: bool = False
    move: Literal["", "rename", "copy"] = ""
    executable: bool | None = None
    hunks: list[Hunk] = field(default_factory=list)

    def meant(self, name: str, is_there: Callable[[str], bool]) -> str:
        """The path that `old` or `new` means, with or without the letter that diffs put before it."""
        bare = name[2:] if self.prefixed and _PREFIX.match(name) else name
        return name if is_there(name) and not is_there(bare) else bare


def read_patch(patch: str) -> list[FilePatch]:
    """The changes of a patch, in their order. Raises ToolRefused for one that can't be understood."""
    files = _Reader(_lines(patch)).read()
    if not files:
        written_out = "; its line ends are written out as \\n: give real ones" if _is_one_line(patch) else ""
        raise ToolRefused(
            "the patch names no file; begin with `--- a/PATH` and `+++ b/PATH`, "
            f"or with `*** Begin Patch` and `*** Update File: PATH`{written_out}"
        )
    return files


def _is_one_line(patch: str) -> bool:
    return "\\n" in patch and "\n" not in patch.strip()


def _lines(patch: str) -> list[str]:
    """The patch's lines, without code fences and what is outside them, and without CRs that its transport added."""
    lines = patch.split("\n")
    heads = [line for line in lines if line.startswith(_HEADS)]
    if heads and all(line.endswith("\r") for line in heads):
        lines = [line.removesuffix("\r") for line in lines]
    fence = next((at for at, line in enumerate(lines) if _FENCE.match(line)), None)
    if fence is None or any(line.startswith(_HEADS) for line in lines[:fence]):
        return lines
    inside = False
    kept: list[str] = []
    for line in lines:
        if _FENCE.match(line):
            inside = not inside
        elif inside:
            kept.append(line)
    return kept


class _Reader:
    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._at = 0
        self._files: list[FilePatch] = []
        self._within: list[str] = []
        self._fresh = self._adds = False

    def read(self) -> list[FilePatch]:
        while self._at < len(self._lines):
            self._read_next(self._lines[self._at])
        return self._files

    def _read_next(self, line: str) -> None:
        if section := _SECTION.match(line):
            self._begin_section(section[1], section[2].strip())
            self._at += 1
        elif line.startswith("diff --git "):
            self._begin_git(line)
        elif names_file(self._lines, self._at):
            self._name_file()
        elif line.startswith("*** Move to:") and self._files:
            self._files[-1].new, self._files[-1].move = line.partition(":")[2].strip(), "rename"
            self._at += 1
        elif self._files and (line.startswith("@@") or (self._fresh and line.startswith((" ", "+", "-")))):
            self._read_hunk(line)
        else:
            self._pass_over(line)

    def _begin(self, file: FilePatch) -> None:
        self._files.append(file)
        self._within = []
        self._fresh, self._adds = True, False

    def _begin_section(self, what: str, path: str) -> None:
        self._begin(FilePatch(None if what == "Add" else path, None if what == "Delete" else path))
        self._adds = what == "Add"

    def _begin_git(self, line: str) -> None:
        names = line.removeprefix("diff --git ").rstrip()
        half = len(names) // 2  # the two are equally long, unless the file moves: then they are said again below
        self._begin(FilePatch(_name(names[:half]), _name(names[half + 1 :]), prefixed=True))
        self._at += 1
        while self._at < len(self._lines) and (header := _GIT.match(self._lines[self._at])):
            self._read_git_header(self._files[-1], header[1], header[2].strip())
            self._at += 1

    def _read_git_header(self, file: FilePatch, what: str, value: str) -> None:
        match what:
            case "new file mode":
                file.old = None
            case "deleted file mode":
                file.new = None
            case "rename from" | "copy from":
                file.old, file.prefixed = _name(value), False
                file.move = "rename" if what == "rename from" else "copy"
            case "rename to" | "copy to":
                file.new = _name(value)
        if what in {"new file mode", "new mode"}:
            if not value.startswith("100"):
                raise ToolRefused(
                    f"the patch makes a link or a submodule of {file.new}; only plain files can be patched"
                )
            file.executable = value.endswith("755")

    def _name_file(self) -> None:
        """Read `---` and `+++`; after a header that named the file, they only repeat it."""
        names: dict[str, str | None] = {}
        while self._at < len(self._lines) and self._lines[self._at].startswith(("--- ", "+++ ")) and len(names) < 2:
            line = self._lines[self._at]
            names[line[:3]] = _name(line[4:])
            self._at += 1
        old, new = names.get("---", names.get("+++")), names.get("+++", names.get("---"))
        if not self._fresh:
            self._begin(FilePatch(old, new, prefixed=True))
        elif self._files[-1].prefixed:
            self._files[-1].old, self._files[-1].new = old, new

    def _read_hunk(self, line: str) -> None:
        if line.startswith("@@@"):
            raise ToolRefused("the patch is a combined diff of a merge, which can't be applied; give a plain one")
        began = self._at
        hunk, self._at = read_hunk(self._lines, self._at, self._within)
        for passed in self._lines[began : self._at]:
            self._require_marked(passed)
        self._fresh = False
        if any(sign != " " for sign, _ in hunk.lines):
            self._files[-1].hunks.append(hunk)
            self._within = []
        elif not hunk.lines:
            self._within = [*hunk.within]

    def _pass_over(self, line: str) -> None:
        """Prose, or a header that says nothing new; but nothing that would change a file."""
        self._adds = self._adds and not line.startswith("*** End Patch")
        self._require_marked(line)
        if line.startswith(("Binary files ", "GIT binary patch")):
            raise ToolRefused("the patch changes a binary file, which can't be patched")
        marked = self._files and line.startswith(("+", "-")) and line.rstrip() != "---"  # that is in a mail's head
        if marked and not begins_something(self._lines, self._at):
            raise ToolRefused(f"the patch has a line that belongs to no hunk: {line[:80]!r}; put @@ before its hunk")
        self._at += 1

    def _require_marked(self, line: str) -> None:
        """Raises ToolRefused for a line without its mark under `*** Add File:`: it would not be in the file."""
        if self._adds and line.strip() and not line.startswith((" ", "+", "-", "@@", "\\", "***")):
            path = self._files[-1].new
            raise ToolRefused(f"{path} is to be created, but {line[:80]!r} has no + before it: begin each line with +")


def _name(text: str) -> str | None:
    """The path in a header; None for no file."""
    if text.startswith('"'):
        quoted = text[1:].rpartition('"')[0].encode(errors="surrogateescape")
        return _ESCAPE.sub(_unescaped, quoted).decode(errors="surrogateescape")
    name = _DATE.sub("", text.partition("\t")[0]).strip()
    return None if name == _NOWHERE else name


def _unescaped(escape: re.Match[bytes]) -> bytes:
    what = escape[1]
    return bytes([int(what, 8) if len(what) == 3 else _ESCAPES.get(what[0], what[0])])
