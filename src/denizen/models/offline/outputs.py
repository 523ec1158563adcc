"""Reading what tools answer: paths, and the text of files."""

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from denizen.messages import ToolResult
from denizen.models.offline.plan import Trouble, Want, run

PAGES = 16
"""Pages of a listing that are looked at; one has 500 paths."""

PAGE_LINES = 400
"""Lines that `view` shows at most."""

_PAGE = 500
_MORE = re.compile(r"^\[there is more; ", re.MULTILINE)
_CUT = re.compile(r"[^\n]*\n\[cut: \d+ of \d+ characters[^\n]*\]\s*$")
"""The end of a result that was longer than the engine lets through: a broken line, and its remark."""
_NUMBERED = re.compile(r"\d+\t(.*)", re.DOTALL)
_GO_ON = re.compile(r"^\[.* start=(\d+)\]$", re.MULTILINE)
_HIT = re.compile(r"(\d+):(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Listing:
    """Paths of files; `complete` is False where there are more."""

    files: Sequence[str]
    complete: bool

    @property
    def note(self) -> str:
        """What has to be said of it."""
        return "" if self.complete else "\n\nThat is what I see in a part of the files; there are more."


@dataclass(frozen=True, slots=True)
class Shown:
    """A file as `read` shows it: its lines, and what else was said; `complete` is False where there are more lines."""

    lines: Sequence[str]
    remarks: str
    complete: bool

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)


def find_files(pattern: str = "*", path: str = ".") -> Generator[Sequence[Want], Sequence[ToolResult], Listing]:
    """The files that `find` finds: page by page, each time as many as before, up to `PAGES`. Raises Trouble."""
    pages = [(yield from run("find", pattern=pattern, path=path))]
    while _MORE.search(pages[-1]) and len(pages) < PAGES:
        starts = range(len(pages) * _PAGE + 1, 2 * len(pages) * _PAGE, _PAGE)
        results = yield [Want("find", {"pattern": pattern, "path": path, "start": start}) for start in starts]
        pages += [result.text for result in results if not result.is_error]
        if any(result.is_error for result in results):
            break
    whole = [_CUT.sub("", page) for page in pages]
    lines = [line for page in whole for line in page.split("\n")]
    files = [line for line in lines if line and not line.startswith("[") and not line.endswith("/")]
    return Listing(files, not _MORE.search(pages[-1]) and whole == pages)


def read_files(paths: Sequence[str]) -> Generator[Sequence[Want], Sequence[ToolResult], Sequence[ToolResult]]:
    """What `read` says of files, or where that isn't offered, `view`; it may say that it can't. Raises Trouble."""
    try:
        return (yield [Want("read", {"path": path}) for path in paths])
    except Trouble:
        return (yield [Want("view", {"path": path, "lines": f"1-{PAGE_LINES}"}) for path in paths])


def shown(text: str) -> Shown:
    """What an answer of `read`, or of `view` about lines, says."""
    lines = text.split("\n")
    numbered = [match[1] for line in lines if (match := _NUMBERED.fullmatch(line))]
    remarks = [line for line in lines if not _NUMBERED.fullmatch(line)]
    return Shown(numbered, "\n".join(remarks), not _GO_ON.search(text) and not _CUT.search(text))


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that `grep` found."""

    path: str
    number: int
    line: str

    def __str__(self) -> str:
        return f"{self.path}:{self.number}: {self.line.strip()}"


def hits_in(text: str) -> tuple[list[Hit], str]:
    """The lines that an answer of `grep` shows, below the name of their file, and what it remarks on itself."""
    hits: list[Hit] = []
    remarks: list[str] = []
    path = ""
    for row in text.split("\n"):
        if match := _HIT.fullmatch(row):
            hits.append(Hit(path, int(match[1]), match[2]))
        elif row.startswith("["):
            remarks.append(row)
        else:
            path = row
    return hits, "\n".join(remarks)
