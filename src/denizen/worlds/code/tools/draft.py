"""A file of code on its way to another content, symbol by symbol."""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from io import StringIO

from denizen.errors import ToolRefused
from denizen.structure import FUNCTIONS, TYPES, Outline, Symbol, Unparsable, language_of, outline, parsed
from denizen.tools.editing.matching import indent_of
from denizen.tools.editing.texts import LineDiff, LineEnds, difference, unchanged
from denizen.tools.files.changes import LoadedFile, NewContent
from denizen.worlds.code.tools.layout import fit, with_after, with_before, without
from denizen.worlds.code.tools.symbols.target import matching, no_such_symbol

_LARGE_KINDS = FUNCTIONS | TYPES | {"module"}  # kinds with blank lines between them


@dataclass(frozen=True)
class Draft:
    """A file as it was read, and its lines as they will be."""

    source: LoadedFile
    lines: Sequence[str]
    language: str

    @classmethod
    def of(cls, source: LoadedFile) -> "Draft":
        """The file as it is. Raises ToolRefused for one whose structure isn't known."""
        text = source.text.replace("\r\n", "\n")
        language = language_of(source.path, text.encode("utf-8", "surrogateescape"))
        if not language:
            raise ToolRefused(f"the structure of {source.path} isn't known; change it with apply_patch")
        return cls(source, text.removesuffix("\n").split("\n") if text else [], language)

    @property
    def path(self) -> str:
        """The file's path."""
        return self.source.path

    @cached_property
    def text(self) -> str:
        """The new text, every line ended."""
        return "".join(f"{line}\n" for line in self.lines)

    @cached_property
    def utf8(self) -> bytes:
        """Its bytes, by which positions of symbols are counted."""
        return self.text.encode("utf-8", "surrogateescape")

    @cached_property
    def outline(self) -> Outline:
        """Its structure. Raises ToolRefused for a file that can't be parsed."""
        try:
            return outline(self.utf8, self.language)
        except Unparsable as error:
            raise ToolRefused(f"{self.path} is {error}; change it with apply_patch") from error

    def find(self, name: str) -> Symbol:
        """The one symbol that is meant, alone on its lines. Raises ToolRefused."""
        found = matching(self.outline.symbols, name)
        if not found:
            raise no_such_symbol(self.path, self.outline.symbols, name)
        if len(found) > 1:
            every = ", ".join(f"{symbol.path}@{symbol.first}" for symbol in found[:10])
            raise ToolRefused(f"{self.path} has {name!r} {len(found)} times; say which: {every}")
        symbol, source = found[0], self.utf8
        begin, end = source.rfind(b"\n", 0, symbol.start) + 1, source.find(b"\n", symbol.end)
        other = source[begin : symbol.start].strip() or source[symbol.end : end].strip()
        same = [each for each in self.outline.symbols if (each.start, each.end) == (symbol.start, symbol.end)]
        if other or len(same) > 1:
            raise ToolRefused(
                f"{self.path}/{symbol.path} shares line {symbol.first} with other code; change it with apply_patch"
            )
        return symbol

    def content(self, symbol: Symbol) -> str:
        """The lines of a symbol."""
        return "\n".join(self.lines[symbol.first - 1 : symbol.last])

    def delete(self, symbol: Symbol) -> "Draft":
        """Without the symbol."""
        return self._with(without(self.lines, symbol.first, symbol.last))

    def replace(self, symbol: Symbol, content: str) -> "Draft":
        """With other code in place of the symbol, whose comments and decorators stay if the new code has none."""
        block = self._fit(content, indent_of(self.lines[symbol.first - 1]))
        new = self._with([*self.lines[: symbol.first - 1], *block, *self.lines[symbol.last :]])
        there = [
            each
            for each in new.outline.symbols
            if each.depth == symbol.depth and symbol.first <= each.first and each.last < symbol.first + len(block)
        ]
        named = [each for each in there if each.name == symbol.name] or there
        if len(named) != 1:
            return new
        [heir] = named
        attributes = self.utf8[symbol.attributed : symbol.declared] if heir.attributed == heir.declared else b""
        comments = self.utf8[symbol.start : symbol.attributed] if heir.start == heir.attributed else b""
        text = new.utf8[: heir.attributed] + attributes + new.utf8[heir.attributed :]
        text = text[: heir.start] + comments + text[heir.start :]
        return self._with(text.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n"))

    def above(self, symbol: Symbol) -> list[str]:
        """The lines of a symbol's comments and decorators."""
        text = self.utf8[symbol.start : symbol.declared].decode("utf-8", "surrogateescape")
        return [line for line in map(str.strip, text.split("\n")) if line]

    def insert(self, symbol: Symbol | None, content: str, *, before: bool) -> "Draft":
        """With new code next to the symbol; None: at the beginning or the end of the file."""
        block = self._fit(content, indent_of(self.lines[symbol.first - 1]) if symbol else "")
        if symbol:
            gap = self._gap(symbol, block, before=before)
            put, at = (with_before, symbol.first) if before else (with_after, symbol.last)
            return self._with(put(self.lines, at, block, gap))
        gap = (2 if self.language == "python" else 1) if self.lines else 0
        return self._with(
            with_before(self.lines, 1, block, gap) if before else with_after(self.lines, len(self.lines), block, gap)
        )

    def checked(self) -> NewContent:
        """The content to write. Raises ToolRefused if the file followed the grammar and no longer would."""
        old = Draft.of(self.source)
        if not old.outline.problems:
            if self.outline.problems:
                line, _, what = self.outline.problems[0]
                raise self._broken(line, what)
            if self.language == "python" and old.compile_error is None:
                error = self.compile_error
                if error:
                    raise self._broken(error[0], error[1])
        return NewContent(self.source.encode(self._written()), replaces=self.source.version)

    def difference(self) -> LineDiff:
        """The changes as a diff."""
        return difference(self.source.text, self._written())

    @cached_property
    def compile_error(self) -> tuple[int, str] | None:
        """Python's syntax error in the text: its line, and words."""
        with suppress(Unparsable):
            return parsed(_compile_error, self.utf8, self.language)
        return None

    def _written(self) -> str:
        """The new text, with every line that isn't changed as it was, line ends included."""
        line_ends = LineEnds(self.source.text)
        old, new = StringIO(line_ends.text).readlines(), [f"{line}\n" for line in self.lines]
        if new and old and not old[-1].endswith("\n"):
            new[-1] = new[-1].removesuffix("\n")
        begin, end = unchanged(old, new)
        span = len("".join(old[:begin])), len("".join(old[: len(old) - end]))
        return line_ends.replace([(span, "".join(new[begin : len(new) - end]))])

    def _with(self, lines: Sequence[str]) -> "Draft":
        return replace(self, lines=lines)

    def _fit(self, content: str, indent: str) -> list[str]:
        try:
            return fit(content, self.language, indent, self.lines)
        except Unparsable as error:
            raise ToolRefused(f"the content is {error}") from error

    def _broken(self, line: int, what: str) -> ToolRefused:
        there = self.lines[line - 1].strip()[:120] if line <= len(self.lines) else "the end"
        return ToolRefused(
            f"that would break the grammar of {self.path} at what would be line {line} ({what}): {there}\n"
            "Nothing was written; the content must be complete, in the place of the whole symbol"
        )

    def _gap(self, symbol: Symbol, block: Sequence[str], *, before: bool) -> int:
        """How many blank lines go between the symbol and a new neighbour: as between others of its size, else usual."""
        usual = 2 if self.language == "python" and not symbol.depth else 1
        large = symbol.kind in _LARGE_KINDS
        if large != (len(block) > 1):
            return usual
        others = [
            each for each in self.outline.symbols if each.depth == symbol.depth and (each.kind in _LARGE_KINDS) == large
        ]
        above = max((each.last for each in others if each.last < symbol.first), default=None)
        below = min((each.first for each in others if each.first > symbol.last), default=None)
        between = [
            self.lines[above : symbol.first - 1] if above else None,
            self.lines[symbol.last : below - 1] if below else None,
        ]
        for lines in between if before else reversed(between):
            if lines is not None and not any(line.strip() for line in lines):
                return len(lines)
        return usual if large else 0


def _compile_error(source: bytes, language: str) -> tuple[int, str] | None:
    """This Python's syntax error in a program: its line, and words."""
    import ast

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(source.decode("utf-8", "surrogateescape"))
    except SyntaxError as error:
        return error.lineno or 1, error.msg
    except (ValueError, RecursionError, MemoryError):  # not a program, or one that is nested too deeply
        pass
    return None
