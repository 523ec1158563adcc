"""How a plan produces its answer: it yields the calls that it needs, receives their results, and returns the text.

Also what plans have in common: running tools, and reading their results.
"""

import re
from collections.abc import Generator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Final

from denizen.messages import ToolCall, ToolResult

PAGES = 16
"""Pages of a listing that are read; one has 500 paths."""

PAGE_LINES = 400
"""Lines that `view` shows at most."""

_PARTIAL: Final = re.compile(
    r"^\[(?:there is more;|more is left out;|not all was searched|cut: \d+ of \d+ characters|.* start=\d+\]$)",
    re.MULTILINE,
)
"""Remarks of tools, and of the engine, that a result isn't whole."""
_CUT: Final = re.compile(r"[^\n]*\n\[cut: \d+ of \d+ characters[^\n]*\]\s*$")
"""The end of a result that the engine cut: a broken line, and its note."""


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
class Rows:
    """The lines of a result; `complete` is False if there are more."""

    lines: list[str]
    complete: bool


def rows_in(text: str) -> Rows:
    """The lines of a result without the tool's remarks."""
    lines = _CUT.sub("", text).split("\n")
    return Rows([line for line in lines if line and not line.startswith("[")], not _PARTIAL.search(text))


def file_text(text: str) -> Rows:
    """The lines of the file in a result of `read`, or of `view` with lines."""
    return Rows(re.findall(r"^\d+\t(.*)$", text, re.MULTILINE), not _PARTIAL.search(text))


def find_files(pattern: str = "*", path: str = ".") -> Generator[Sequence[Want], Sequence[ToolResult], Rows]:
    """The files that `find` finds on its first `PAGES` pages. Raises Trouble."""
    found: list[str] = []
    for _ in range(PAGES):
        page = rows_in((yield from run("find", pattern=pattern, path=path, start=len(found) + 1)))
        found += page.lines
        if page.complete or not page.lines:
            break
    return Rows([path for path in found if not path.endswith("/")], page.complete)


def read_files(paths: Sequence[str]) -> Generator[Sequence[Want], Sequence[ToolResult], Sequence[ToolResult]]:
    """The results of `read`, or of `view` if that isn't offered; some may be errors. Raises Trouble."""
    try:
        return (yield [Want("read", {"path": path}) for path in paths])
    except Trouble:
        return (yield [Want("view", {"path": path, "lines": f"1-{PAGE_LINES}"}) for path in paths])
