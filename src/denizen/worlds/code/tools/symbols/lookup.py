"""Code files with their structure, and symbols looked up by name in one or in the project's index."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from denizen.errors import ToolRefused
from denizen.structure import Index, Outline, Symbol, Unparsable, language_of, outline
from denizen.structure.outline import MAX_BYTES
from denizen.tools.files.text import lines_of, open_text, readable, size
from denizen.tools.files.workspace import Workspace
from denizen.worlds.code.tools.symbols.project_index import utf8, with_index
from denizen.worlds.code.tools.symbols.skeleton import types_only
from denizen.worlds.code.tools.symbols.target import FORWARD, Target, names_of, no_such_symbol

MAX_LINE_CHARS = 500  # characters of a line that are shown
MAX_FILES = 20  # files that are read for a symbol that is looked up by name
_CUT = "… [the line goes on]"


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A text file. `source` is its text in UTF-8; `note` says why there is no `outline`."""

    path: str
    bytes: int
    source: bytes = b""
    language: str = ""
    outline: Outline | None = None
    note: str = ""

    @property
    def lines(self) -> int:
        """Their number."""
        return self.source.count(b"\n") + (not self.source.endswith(b"\n") and self.source != b"")

    @property
    def symbols(self) -> Sequence[Symbol]:
        """All that it defines."""
        return self.outline.symbols if self.outline else ()


@dataclass(frozen=True, slots=True)
class SymbolInFile:
    """A symbol and the file that it is in."""

    code: CodeFile
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
        symbol = self.symbol
        return [each for each in self.code.symbols if symbol.start <= each.start and each.end <= symbol.end]

    def numbered(self, most: int, chars: int) -> tuple[list[str], int]:
        """Its lines with their numbers, and how many are left out beyond `most` of them or `chars` characters."""
        lines = self.code.source.split(b"\n")[self.symbol.first - 1 : self.symbol.last]
        rows: list[str] = []
        for number, line in enumerate(lines[:most], self.symbol.first):
            text = _text(line.removesuffix(b"\r"))
            rows.append(f"{number}\t{text[:MAX_LINE_CHARS]}{_CUT if len(text) > MAX_LINE_CHARS else ''}")
            chars -= len(rows[-1]) + 1
            if chars < 0:
                break
        return rows, len(lines) - len(rows)


def load_code(workspace: Workspace, address: str) -> CodeFile:
    """The file and its structure. Raises ToolRefused for binary data."""
    with workspace.at(address) as place, place.open() as file:
        data = file.read(MAX_BYTES + 1)
        found = place.stat()
        length = max(len(data), found.st_size if found else 0)
        if length > MAX_BYTES and b"\0" not in data[:8192]:
            return CodeFile(place.path, length, note=f"over {size(MAX_BYTES)}, too large to parse")
        source = utf8(data)
        if source is None:
            raise ToolRefused(f"{place.path} is binary data ({size(length)}), not text; it isn't shown")
    language = language_of(place.path, source)
    if not language:
        return CodeFile(place.path, length, source, note="" if not source else "its structure isn't known")
    try:
        return CodeFile(place.path, length, source, language, outline(source, language))
    except Unparsable as error:
        return CodeFile(place.path, length, source, language, note=str(error))


def numbered_lines(
    workspace: Workspace, address: str, lines: tuple[int, int], most: int, stop: threading.Event
) -> tuple[Sequence[str], bool]:
    """The lines of a file with their numbers, as many as fit into `most` characters, and whether there are more.

    Raises ToolRefused for binary data.
    """
    first, last = lines
    rows: list[str] = []
    chars = 0
    with workspace.at(address) as place, place.open() as file:
        text = open_text(file)
        if text is None:
            raise ToolRefused(f"{place.path} is binary data, not text; it isn't shown")
        for number, (line, cut) in enumerate(lines_of(text, MAX_LINE_CHARS, stop), 1):
            if number > last or chars > most:
                return rows, True
            if number >= first:
                rows.append(f"{number}\t{readable(line)[0]}{_CUT if cut else ''}")
                chars += len(rows[-1]) + 1
    return rows, False


def find_symbols(
    workspace: Workspace, home: Path, target: Target, stop: threading.Event, show: Callable[[str], None]
) -> list[SymbolInFile]:
    """The symbols of that name below the folder, by the index. Raises ToolRefused if there is none."""

    def work(index: Index) -> list[tuple[str, Symbol]]:
        wanted = names_of(target.symbol)
        for exact in (True, False):
            named = index.symbols(name=wanted[-1], below=target.path, exact=exact)
            # the name is the end of the symbol's path, which goes on to the left with the file's folders
            whole = [(each, names_of(each.file)[:-1] + names_of(each.symbol.path)) for each in named]
            if not exact:
                wanted = [name.casefold() for name in wanted]
                whole = [(each, [name.casefold() for name in names]) for each, names in whole]
            if found := [(each.file, each.symbol) for each, names in whole if names[-len(wanted) :] == wanted]:
                definitions = [each for each in found if each[1].kind not in FORWARD]
                return definitions if len(definitions) == 1 else found
        every = [each.symbol for each in index.symbols(below=target.path)]
        raise no_such_symbol(f"{target.missing or target.path}; the code", every, target.symbol)

    _require_indexed(target)
    located = with_index(workspace, home, work, stop, show)
    found: list[SymbolInFile] = []
    for path in dict.fromkeys(file for file, _ in located):
        code = load_code(workspace, path)
        meant = {(symbol.path, symbol.first) for file, symbol in located if file == path}
        found += [SymbolInFile(code, symbol) for symbol in code.symbols if (symbol.path, symbol.first) in meant]
        if len(found) > MAX_FILES:
            break
    return found


def types_below(
    workspace: Workspace, home: Path, target: Target, stop: threading.Event, show: Callable[[str], None]
) -> dict[str, list[Symbol]]:
    """The types, with their members, of each file below a folder of the workspace."""
    _require_indexed(target)
    located = with_index(workspace, home, lambda index: index.symbols(below=target.path), stop, show)
    by_file: dict[str, list[Symbol]] = {}
    for each in located:
        by_file.setdefault(each.file, []).append(each.symbol)
    return {file: types for file, symbols in by_file.items() if (types := types_only(symbols))}


def _require_indexed(target: Target) -> None:
    if target.path.startswith("/"):
        raise target.missing or ToolRefused(f"{target.path} is outside the workspace; only its code is indexed")


def _text(source: bytes) -> str:
    return readable(source.decode("utf-8", "surrogateescape"))[0]
