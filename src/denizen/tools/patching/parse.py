"""Parses patches as models write them: unified diffs, git's, and the `*** Begin Patch` form.

Counts and line numbers may be wrong, headers may be missing, code fences and prose may surround the patch. But a line
that would change something is never skipped: if it isn't clear what it belongs to, the patch is refused.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from denizen.errors import ToolRefused

Line = tuple[str, str]  # a line of a hunk: ` `, `-` or `+`, and its text

_HEADS = ("@@", "+++ ", "*** ")
_MARKED = (" ", "+", "-")
_HUNK = re.compile(r"@@\s*(?:-(\d+)(?:,(\d+))?(?:\s+\+(\d+)(?:,(\d+))?)?\s*(?:@@)?)?(.*)")
_SIGNATURE = re.compile(r"\d+\.\d+[\w.]*\s*$")
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


@dataclass(frozen=True, slots=True)
class Hunk:
    """One change: lines that stay, go and come.

    `at` is the stated number of lines before it (None: not stated); `empty`: by its header it replaces no line. It
    comes after the lines `headings`; `at_end`: at the end of the file. `old_open` and `new_open`: the last line has no
    line end. `bare` are the indexes of context lines that lack the blank in front.
    """

    lines: Sequence[Line]
    at: int | None = None
    empty: bool = False
    headings: Sequence[str] = ()
    at_end: bool = False
    old_open: bool = False
    new_open: bool = False
    bare: frozenset[int] = frozenset()

    @property
    def old(self) -> list[str]:
        """The lines that must be there."""
        return [text for sign, text in self.lines if sign != "+"]

    @property
    def new(self) -> list[str]:
        """The lines that it leaves."""
        return [text for sign, text in self.lines if sign != "-"]

    @property
    def strict(self) -> bool:
        """Whether some of its context may be no context at all, but prose."""
        return any(self.lines[number][1].strip() for number in self.bare)

    @property
    def unmarked(self) -> "Hunk":
        """The hunk if no context line has a mark, and a blank in front is part of the line."""
        whole = [
            (sign, f" {text}") if sign == " " and number not in self.bare else (sign, text)
            for number, (sign, text) in enumerate(self.lines)
        ]
        return replace(self, lines=whole)

    def split(self) -> tuple[list[str], list[Line], list[str]]:
        """The context before the first change, the lines from the first change to the last, and the context after."""
        changed = [number for number, (sign, _) in enumerate(self.lines) if sign != " "]
        first, last = changed[0], changed[-1] + 1
        before, after = self.lines[:first], self.lines[last:]
        return [text for _, text in before], [*self.lines[first:last]], [text for _, text in after]


@dataclass(slots=True)
class FilePatch:
    """The change of one file. `old` None: it is created; `new` None: it is deleted; `move` if they differ.

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
    lines = patch.split("\n")
    heads = [line for line in lines if line.startswith(_HEADS)]
    if heads and all(line.endswith("\r") for line in heads):  # its transport added them
        lines = [line.removesuffix("\r") for line in lines]
    fence = next((at for at, line in enumerate(lines) if _FENCE.match(line)), None)
    if fence is not None and not any(line.startswith(_HEADS) for line in lines[:fence]):
        inside, fenced, lines = False, lines, list[str]()
        for line in fenced:
            if _FENCE.match(line):
                inside = not inside
            elif inside:
                lines.append(line)
    files = _PatchParser(lines).read()
    if not files:
        one_line = "\\n" in patch and "\n" not in patch.strip()
        raise ToolRefused(
            "the patch names no file; begin with `--- a/PATH` and `+++ b/PATH`, "
            "or with `*** Begin Patch` and `*** Update File: PATH`"
            + ("; its line ends are written out as \\n: give real ones" if one_line else "")
        )
    return files


class _PatchParser:
    """Reads the lines from the first to the last.

    `_headings` are those of empty hunks before the next one; `_fresh`: the current file has no hunk yet, and hunks may
    do without @@; `_adds`: we are in an `*** Add File:` section, where every line needs its mark.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._at = 0
        self._files: list[FilePatch] = []
        self._headings: list[str] = []
        self._fresh = self._adds = False

    def read(self) -> list[FilePatch]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if section := _SECTION.match(line):
                what, path = section[1], section[2].strip()
                self._begin(FilePatch(None if what == "Add" else path, None if what == "Delete" else path))
                self._adds = what == "Add"
                self._at += 1
            elif line.startswith("diff --git "):
                self._read_git(line)
            elif _names_file(self._lines, self._at):
                self._read_names()
            elif line.startswith("*** Move to:") and self._files:
                self._files[-1].new, self._files[-1].move = line.partition(":")[2].strip(), "rename"
                self._at += 1
            elif self._files and (line.startswith("@@") or (self._fresh and line.startswith(_MARKED))):
                self._read_hunk(line)
            else:
                self._skip(line)
        return self._files

    def _begin(self, file: FilePatch) -> None:
        self._files.append(file)
        self._headings = []
        self._fresh, self._adds = True, False

    def _read_git(self, line: str) -> None:
        names = line.removeprefix("diff --git ").rstrip()
        half = len(names) // 2  # the two are equally long, unless the file moves: then headers below repeat them
        file = FilePatch(_name(names[:half]), _name(names[half + 1 :]), prefixed=True)
        self._begin(file)
        self._at += 1
        while self._at < len(self._lines) and (header := _GIT.match(self._lines[self._at])):
            what, value = header[1], header[2].strip()
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
            self._at += 1

    def _read_names(self) -> None:
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
        hunk, self._at = _hunk_at(self._lines, self._at, self._headings)
        for one in self._lines[began : self._at]:
            self._require_marked(one)
        self._fresh = False
        if any(sign != " " for sign, _ in hunk.lines):
            self._files[-1].hunks.append(hunk)
            self._headings = []
        elif not hunk.lines:
            self._headings = [*hunk.headings]

    def _skip(self, line: str) -> None:
        """Skip prose, or a header that says nothing new; but nothing that would change a file."""
        self._adds = self._adds and not line.startswith("*** End Patch")
        self._require_marked(line)
        if line.startswith(("Binary files ", "GIT binary patch")):
            raise ToolRefused("the patch changes a binary file, which can't be patched")
        marked = self._files and line.startswith(("+", "-")) and line.rstrip() != "---"  # that is in a mail's head
        if marked and not _begins_something(self._lines, self._at):
            raise ToolRefused(f"the patch has a line that belongs to no hunk: {line[:80]!r}; put @@ before its hunk")
        self._at += 1

    def _require_marked(self, line: str) -> None:
        """Raises ToolRefused for a line without its mark under `*** Add File:`: it would be missing in the file."""
        if self._adds and line.strip() and not line.startswith((*_MARKED, "@@", "\\", "***")):
            path = self._files[-1].new
            raise ToolRefused(f"{path} is to be created, but {line[:80]!r} has no + before it: begin each line with +")


def _name(text: str) -> str | None:
    """The path in a header; None for no file."""
    if text.startswith('"'):
        quoted = text[1:].rpartition('"')[0].encode(errors="surrogateescape")

        def unescaped(escape: re.Match[bytes]) -> bytes:
            what = escape[1]
            return bytes([int(what, 8) if len(what) == 3 else _ESCAPES.get(what[0], what[0])])

        return _ESCAPE.sub(unescaped, quoted).decode(errors="surrogateescape")
    name = _DATE.sub("", text.partition("\t")[0]).strip()
    return None if name == _NOWHERE else name


def _hunk_at(lines: Sequence[str], at: int, headings: Sequence[str]) -> tuple[Hunk, int]:
    """The hunk that begins at `lines[at]`, with its header or without, and where it ends, whatever the header says."""
    header = _HUNK.match(lines[at])
    start, old, _, new, rest = header.groups() if header else (None, None, None, None, "")
    body = at + 1 if header else at
    end = _counted(lines, body, int(old or 1), int(new or 1)) if start else None
    if end is None:
        end = next((number for number in range(body, len(lines)) if _begins_something(lines, number)), len(lines))
    following = lines[end] if end < len(lines) else ""
    # without blank lines at its end, and without prose: that comes after a patch of sections, not in it
    last = end
    while last > body and not lines[last - 1].startswith((*_MARKED, "\\")):
        if following.startswith("*** ") and lines[last - 1].strip():
            break
        last -= 1
    parsed: list[Line] = []
    opened: set[str] = set()
    bare: set[int] = set()
    for line in lines[body:last]:
        if line.startswith("\\"):
            opened.add(parsed[-1][0] if parsed else "")
        elif line.startswith(_MARKED):
            parsed.append((line[0], line[1:]))
        else:
            bare.add(len(parsed))
            parsed.append((" ", line))
    heading, empty = rest.strip().removesuffix("@@").strip(" ."), old == "0"
    hunk = Hunk(
        parsed,
        at=max(int(start) - (not empty), 0) if start else None,
        empty=empty,
        headings=[*headings, heading] if heading else headings,
        at_end=following.startswith("*** End of File"),
        old_open=bool(opened & {" ", "-"}),
        new_open=bool(opened & {" ", "+"}),
        bare=frozenset(bare),
    )
    return hunk, end


def _begins_something(lines: Sequence[str], at: int) -> bool:
    """Whether a line begins a hunk, a file, or what comes after a patch."""
    line = lines[at]
    if line.startswith(("@@", "diff --git ", "*** ", "Index: ")) or _names_file(lines, at):
        return True
    return line.rstrip() == "--" and at + 1 < len(lines) and bool(_SIGNATURE.match(lines[at + 1]))


def _names_file(lines: Sequence[str], at: int) -> bool:
    """Whether `---` and `+++`, or one of them right before a hunk, name a file here."""
    following = lines[at + 1] if at + 1 < len(lines) else ""
    if lines[at].startswith("--- "):
        return following.startswith(("+++ ", "@@"))
    return lines[at].startswith("+++ ") and following.startswith("@@")


def _counted(lines: Sequence[str], at: int, old: int, new: int) -> int | None:
    """Where the hunk ends by its counts; None if they can't be right."""
    while (old > 0 or new > 0) and at < len(lines):
        sign = lines[at][:1] or " "
        if sign not in " +-\\":
            return None
        old -= sign in " -"
        new -= sign in " +"
        at += 1
    while at < len(lines) and lines[at].startswith("\\"):
        at += 1
    following = next((number for number in range(at, len(lines)) if lines[number].strip()), None)
    is_end = following is None or lines[following][0] not in " +-\\" or _begins_something(lines, following)
    return at if old == new == 0 and is_end else None
