"""Which lines of files match a pattern: by `rg` if it is installed, else by our own matcher, with the same answer.

Either runs as a process that ends with the task. It says only where the matches are; the caller then reads the lines,
from files that can't lead out of the workspace.
"""

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from denizen.errors import ToolRefused
from denizen.ports import Sandboxed
from denizen.tools.programs.process import output_of
from denizen.trusted.programs import find_program

Hit = tuple[int, int]
"""A line number, and the column (in bytes, from 1) of its first match; where lines are counted, their number and 0."""

MAX_PATTERN_CHARS = 30_000  # characters of a pattern
_LONE = re.compile("[\ud800-\udfff]")
_HIT = re.compile(rb"([^\0]+)\0(\d+)(?::(\d+))?[^\n]*\n")
_RG = (
    *("--no-config", "--no-messages", "--color=never"),
    *("--no-heading", "--with-filename", "--null", "--max-columns=1"),  # one byte of each line: the rest isn't needed
    *("--text", "--crlf"),
)


@dataclass(frozen=True, slots=True)
class Query:
    """A regular expression (Python's), and how many lines of one file are wanted at most; `count`: their number."""

    pattern: str
    ignore_case: bool = False
    most: int = 1
    count: bool = False

    def __post_init__(self) -> None:
        """Raises ToolRefused for an invalid pattern, and for one with a meaning that Python warns about."""
        if "\0" in self.pattern or len(self.pattern) > MAX_PATTERN_CHARS or _LONE.search(self.pattern):
            raise ToolRefused(
                f"{self.pattern[:40]!r} can't be searched for: at most {MAX_PATTERN_CHARS:,} characters, and no \\0"
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                re.compile(self.pattern)
        except (re.error, Warning, OverflowError, RecursionError) as error:
            raise ToolRefused(
                f"{self.pattern!r} isn't a regular expression (Python's): {error}; "
                "put \\ before characters that stand for themselves"
            ) from error


class Searcher:
    """Runs queries; `environ` says where `rg` is, and is the environment of the processes."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)

    async def command(self, query: Query, folder: str) -> list[str]:
        """The command that answers the query for the files in `folder` whose names are appended to it."""
        with contextlib.suppress(FileNotFoundError):
            rg = find_program("rg", self._environ, Path(folder))
            command = [rg, *_RG, "-e", query.pattern, *(["-i"] if query.ignore_case else [])]
            status, _ = await output_of(Sandboxed([*command, "-"], self._environ), Path("/"), seconds=None, most=0)
            if status in {0, 1}:
                more = ["--count"] if query.count else ["--line-number", "--column", f"--max-count={query.most}"]
                return [*command, *more, "--"]
        flags = ("i" if query.ignore_case else "") + ("c" if query.count else "")
        matcher = str(Path(__file__).with_name("matcher.py"))
        return [sys.executable, "-IS", matcher, query.pattern, flags, str(query.most)]

    async def search(self, command: Sequence[str], folder: str, paths: Sequence[str]) -> dict[str, list[Hit]]:
        """The hits in the files, by their paths; files without any are left out."""
        program = Sandboxed([*command, *paths], self._environ)
        _, output = await output_of(program, Path(folder), seconds=None, most=sys.maxsize)
        hits: dict[str, list[Hit]] = {}
        for path, line, column in _HIT.findall(output):
            hits.setdefault(os.fsdecode(path), []).append((int(line), int(column or 0)))
        return hits
