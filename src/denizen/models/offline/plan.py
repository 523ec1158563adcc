"""How a plan produces its answer: it yields the calls that it needs, receives their results, and returns the text.

Also what plans have in common: running tools, and reading their results.
"""

import re
from collections.abc import Generator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from denizen.messages import ToolCall, ToolResult

PAGES = 16
"""Pages of a listing that are read; one has 500 paths."""

PAGE_LINES = 400
"""Lines that `view` shows at most."""

_PAGE = 500
_MORE = re.compile(r"^\[there is more; ", re.MULTILINE)
_CUT = re.compile(r"[^\n]*\n\[cut: \d+ of \d+ characters[^\n]*\]\s*$")
"""The end of a result that the engine cut: a broken line, and its note."""
_NUMBERED = re.compile(r"\d+\t(.*)", re.DOTALL)
_GO_ON = re.compile(r"^\[.* start=(\d+)\]$", re.MULTILINE)
_HIT = re.compile(r"(\d+):(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Want:
    """A call that a plan needs."""

    tool: str
    args: dict[str, Any]


Plan = Generator[Sequence[Want], Sequence[ToolResult], str]


class Trouble(Exception):
    """The plan failed; the text is the answer."""


def advance(plan: Plan, results: Mapping[str, ToolResult], offered: Set[str], mark: str) -> str | list[ToolCall]:
    """Continue a plan as far as the results go: the calls whose results are missing, or its answer.

    `mark` begins the ids of the calls. Calling a tool that isn't offered raises Trouble in the plan.
    """
    try:
        wants = next(plan)
        step = 0
        while True:
            missing = next((want.tool for want in wants if want.tool not in offered), "")
            calls = [ToolCall(f"{mark}-{step}-{n}", want.tool, want.args) for n, want in enumerate(wants)]
            if missing:
                where = " Ask it in `denizen code`." if missing == "analyze" else ""
                wants = plan.throw(Trouble(f"I need the tool `{missing}` for that, and this session has none.{where}"))
            elif all(call.id in results for call in calls):
                wants = plan.send([results[call.id] for call in calls])
            else:
                return calls
            step += 1
    except StopIteration as over:
        return over.value
    except Trouble as trouble:
        return str(trouble)


def run(tool: str, **args: Any) -> Generator[Sequence[Want], Sequence[ToolResult], str]:
    """The text of a tool's result. Raises Trouble with its message if it failed."""
    [result] = yield [Want(tool, args)]
    if result.is_error:
        raise Trouble(failed(result, tool))
    return result.text


def failed(result: ToolResult, tool: str) -> str:
    """The message of a tool that failed."""
    text = result.text.strip()
    return f"That didn't work: `{tool}` says: {text if len(text) <= 600 else f'{text[:600].rstrip()} …'}"


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def block(rows: Sequence[str], most: int = 60) -> str:
    """The rows in a fence, the first ones of many."""
    fence = "````" if any("```" in row for row in rows) else "```"
    more = [f"… and {len(rows) - most} more"] if len(rows) > most else []
    return "\n".join([fence, *rows[:most], *more, fence])


@dataclass(frozen=True, slots=True)
class Listing:
    """Paths of files; `complete` is False if there are more."""

    files: Sequence[str]
    complete: bool

    @property
    def note(self) -> str:
        """What to add to the answer."""
        return "" if self.complete else "\n\nI see only a part of the files; there are more."


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as `read` shows it: its lines, and its remarks; `complete` is False if there are more lines."""

    lines: Sequence[str]
    remarks: str
    complete: bool

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)


def find_files(pattern: str = "*", path: str = ".") -> Generator[Sequence[Want], Sequence[ToolResult], Listing]:
    """The files that `find` finds: each time as many pages as before, up to `PAGES`. Raises Trouble."""
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
    """The results of `read`, or of `view` if that isn't offered; some may be errors. Raises Trouble."""
    try:
        return (yield [Want("read", {"path": path}) for path in paths])
    except Trouble:
        return (yield [Want("view", {"path": path, "lines": f"1-{PAGE_LINES}"}) for path in paths])


def file_text(text: str) -> FileText:
    """The file in a result of `read`, or of `view` with lines."""
    lines = text.split("\n")
    numbered = [match[1] for line in lines if (match := _NUMBERED.fullmatch(line))]
    remarks = [line for line in lines if not _NUMBERED.fullmatch(line)]
    return FileText(numbered, "\n".join(remarks), not _GO_ON.search(text) and not _CUT.search(text))


@dataclass(frozen=True, slots=True)
class Hit:
    """A line that `grep` found."""

    path: str
    number: int
    line: str

    def __str__(self) -> str:
        return f"{self.path}:{self.number}: {self.line.strip()}"


def hits_in(text: str) -> tuple[list[Hit], str]:
    """The lines in a result of `grep`, which are below the name of their file, and its remarks."""
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
