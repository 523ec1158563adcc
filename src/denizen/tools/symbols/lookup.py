"""Symbols looked up by their names in the index, and read from their files."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from denizen.errors import ToolRefused
from denizen.structure import TYPES, Index, Located, Symbol
from denizen.tools.files.text import readable
from denizen.tools.files.workspace import Workspace
from denizen.tools.symbols.code import LONGEST_LINE, Code, load_code
from denizen.tools.symbols.project_index import with_index
from denizen.tools.symbols.skeleton import facts, skeleton, types_only
from denizen.tools.symbols.target import SECOND_BEST, Target, names_of, no_such_symbol

MOST_ROWS = 150
"""Of the types below a folder."""
MOST_FILES = 20
"""Files in which a symbol that is looked for by its name is read."""


@dataclass(frozen=True, slots=True)
class Found:
    """A symbol and the file that it is in."""

    code: Code
    symbol: Symbol

    @property
    def path(self) -> str:
        """How to ask for it again."""
        return f"{self.code.path}/{self.symbol.path}"

    @property
    def source(self) -> str:
        """Its text."""
        return _text(self.code.source[self.symbol.start : self.symbol.end])

    def within(self) -> list[Symbol]:
        """The symbol and those in it."""
        symbols = self.code.outline.symbols if self.code.outline else ()
        return [each for each in symbols if self.symbol.start <= each.start and each.end <= self.symbol.end]

    def numbered(self, most: int, chars: int) -> tuple[list[str], int]:
        """Its lines with their numbers, and how many are left out beyond `most` of them or `chars` characters."""
        lines = self.code.source.split(b"\n")[self.symbol.first - 1 : self.symbol.last]
        rows: list[str] = []
        for number, line in enumerate(lines[:most], self.symbol.first):
            text = _text(line.removesuffix(b"\r"))
            rows.append(f"{number}\t{text[:LONGEST_LINE]}{'… [the line goes on]' if len(text) > LONGEST_LINE else ''}")
            chars -= len(rows[-1]) + 1
            if chars < 0:
                break
        return rows, len(lines) - len(rows)


def find_symbols(
    workspace: Workspace, home: Path, target: Target, stop: threading.Event, show: Callable[[str], None]
) -> list[Found]:
    """The symbols of that name below the folder. Raises ToolRefused where there is none."""
    _require_indexed(target)
    located = with_index(workspace, home, lambda index: _located(index, target), stop, show)
    found: list[Found] = []
    for file in dict.fromkeys(each.file for each in located):
        code = load_code(workspace, file)
        meant = {(each.symbol.path, each.symbol.first) for each in located if each.file == file}
        symbols = code.outline.symbols if code.outline else ()
        found += [Found(code, symbol) for symbol in symbols if (symbol.path, symbol.first) in meant]
        if len(found) > MOST_FILES:
            break
    return found


@dataclass(frozen=True, slots=True)
class Types:
    """The types of several files, and their members."""

    by_file: dict[str, list[Symbol]]

    @property
    def count(self) -> int:
        """How many types there are."""
        return sum(symbol.kind in TYPES for symbols in self.by_file.values() for symbol in symbols)

    def facts(self) -> list[dict[str, Any]]:
        """The symbols as a filter gets them."""
        return [{"file": file, **facts(symbol)} for file, symbols in self.by_file.items() for symbol in symbols]

    def outlined(self, depth: int | None) -> tuple[list[str], int]:
        """Rows for people and models, and how many symbols they leave out; without members where that is too much."""
        total = sum(map(len, self.by_file.values()))
        for without_members in (False, True) if depth is None else (depth == 1,):
            rows = [*self._rows(depth, types_alone=without_members)]
            if len(rows) <= MOST_ROWS:
                break
        shown = sum(row.startswith("  ") for row in rows[:MOST_ROWS])
        return rows[:MOST_ROWS], total - shown

    def _rows(self, depth: int | None, *, types_alone: bool) -> Iterator[str]:
        for file, symbols in self.by_file.items():
            kept = [symbol for symbol in symbols if not types_alone or symbol.kind in TYPES]
            yield file
            yield from (f"  {row}" for row in skeleton(kept, None if types_alone else depth)[0])


def types_below(
    workspace: Workspace, home: Path, target: Target, stop: threading.Event, show: Callable[[str], None]
) -> Types:
    """The types of the files below a folder of the workspace."""
    _require_indexed(target)
    located = with_index(workspace, home, lambda index: index.symbols(below=target.path), stop, show)
    by_file: dict[str, list[Symbol]] = {}
    for each in located:
        by_file.setdefault(each.file, []).append(each.symbol)
    return Types({file: types for file, symbols in by_file.items() if (types := types_only(symbols))})


def _located(index: Index, target: Target) -> list[Located]:
    """The symbols meant by the target's name. Raises ToolRefused where there is none."""
    wanted = names_of(target.symbol)
    for exact in (True, False):
        found = index.symbols(name=wanted[-1], below=target.path, exact=exact)
        ends = [each for each in found if _fits(each, wanted, exact=exact)]
        best = [each for each in ends if each.symbol.kind not in SECOND_BEST]
        if ends:
            return best if len(best) == 1 else ends
    raise _unknown(index, target)


def _fits(located: Located, wanted: Sequence[str], *, exact: bool) -> bool:
    """Whether the name is the end of the symbol's, with the file's before it."""
    names = names_of(located.file)[:-1] + names_of(located.symbol.path)
    if not exact:
        names, wanted = [name.casefold() for name in names], [name.casefold() for name in wanted]
    return names[-len(wanted) :] == [*wanted]


def _unknown(index: Index, target: Target) -> ToolRefused:
    every = [each.symbol for each in index.symbols(below=target.path)]
    return no_such_symbol(f"{target.missing or target.path}; the code", every, target.symbol)


def _require_indexed(target: Target) -> None:
    if target.path.startswith("/"):
        raise target.missing or ToolRefused(f"{target.path} is outside the workspace, whose code alone is indexed")


def _text(source: bytes) -> str:
    return readable(source.decode("utf-8", "surrogateescape"))[0]
