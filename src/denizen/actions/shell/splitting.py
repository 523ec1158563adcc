"""Splitting a command into words as a shell does, but with nothing expanded; and quoting a word."""

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t\r]++)
    | (?P<newline>\n)
    | (?P<escape>\\.)
    | (?P<here><<<)
    | (?P<document><<(?P<dash>-?)[ \t]*+(?P<mark>['"]?)(?P<tag>[A-Za-z_]\w*+)(?P=mark))
    | \$'(?P<coded>(?:\\.|[^'\\])*+)'
    | "(?P<double>(?:\\.|[^"\\])*+)"
    | (?<![A-Za-z0-9])'(?P<single>[^']*+)'(?!(?<=\\')(?:[^\s)]|\)++'))  # 'it\'s' is neither a shell's nor a person's
    | (?<=[A-Za-z0-9])'(?P<inner>(?:[^'\n$]|\$(?!\())*+)'(?![A-Za-z0-9])
    | (?P<open>\()
    | (?P<close>\))
    | (?P<letter>(?<=[A-Za-z0-9])')
    | (?P<alone>["'\\])
    | (?P<plain>[^\s\\<$"'()]++|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_LINE_WITH_ONE_WORD = re.compile(r"^[ \t]*+(?P<tag>[A-Za-z_]\w*+)[ \t\r]*+(?=\)|$)", re.MULTILINE)
_ESCAPED_IN_DOUBLE = re.compile(r'\\([\\"$`\n])')
_CODED = re.compile(r"\\(.)", re.DOTALL)
_CODES = {"n": "\n", "t": "\t", "r": "\r"}
_SPECIAL = " \t'\"\\()$`<"
"""What a backslash makes a plain sign; before any other it is one itself."""
_SAFE = re.compile(r"(?!--)[\w@%+=:,./^-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
WHOLLY_QUOTED = re.compile(r"""\$'(?:\\.|[^'\\])*+'|"(?:\\.|[^"\\])*+"|'[^']*+'""", re.DOTALL)
"""A word of which everything is within one pair of quotes."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word as it is meant: without its quotes.

    `start` is where it begins after the command's name, `gap` the blanks before it. `bare`: nothing of it is quoted;
    `option`: it begins with a `--` that isn't.
    """

    text: str
    start: int
    gap: str
    bare: bool
    option: bool

    @property
    def ends_options(self) -> bool:
        """Whether it is the `--` after which no word is an option."""
        return self.option and self.text == "--"


class WordSplitter:
    """Reads words from any place of a text; linear in what is read, whatever it holds."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read(self, begin: int) -> tuple[list[Word], int]:
        """The words from there to the parenthesis that closes the command, and where that is (-1: nowhere)."""
        reader = _CommandReader(self._text, begin, self)
        return reader.words, reader.end

    def document(self, tag: str, begin: int) -> tuple[int, int] | None:
        """Where the first line after `begin` is that holds nothing but the tag, which ends a here-document."""
        lines = self._tag_lines.get(tag, [])
        index = bisect_left(lines, (begin, 0))
        return lines[index] if index < len(lines) else None

    @cached_property
    def _tag_lines(self) -> dict[str, list[tuple[int, int]]]:
        lines: dict[str, list[tuple[int, int]]] = {}
        for match in _LINE_WITH_ONE_WORD.finditer(self._text):
            lines.setdefault(match["tag"], []).append(match.span())
        return lines


class _CommandReader:
    """One command, token by token."""

    def __init__(self, text: str, begin: int, splitter: WordSplitter) -> None:
        self.words: list[Word] = []
        self.end = -1
        self._text = text
        self._begin = begin
        self._splitter = splitter
        self._pieces: list[str] | None = None
        self._start = self._last_end = begin
        self._bare = True
        self._depth = 0
        self._after_line = 0  # where the text goes on after the here-documents of this line
        self._read(begin)

    def _read(self, at: int) -> None:
        while token := _TOKEN.match(self._text, at):
            kind = token.lastgroup or ""
            if kind == "alone" or (kind == "close" and not self._depth):
                self.end = -1 if kind == "alone" else at
                break
            at = self._take(kind, token)
        self._finish(at)

    def _take(self, kind: str, token: re.Match[str]) -> int:
        """Take a token in; where the next one begins."""
        match kind:
            case "blank":
                self._finish(token.start())
            case "newline":
                self._finish(token.start())
                after, self._after_line = self._after_line, 0
                return max(token.end(), after)
            case "escape" if token[0] == "\\\n":
                self._finish(token.start())
            case "escape":
                self._add(token, token[0][1] if token[0][1] in _SPECIAL else token[0])
            case "here":
                self._finish(token.start())
                self._bare = False
            case "document":
                self._document(token)
            case "coded" | "double" | "single" | "inner":
                self._add(token, _unquoted(kind, token[kind]), bare=False)
            case _:
                self._depth += {"open": 1, "close": -1}.get(kind, 0)
                self._add(token, token[0])
        return token.end()

    def _add(self, token: re.Match[str], piece: str, *, bare: bool = True) -> None:
        pieces = self._pieces
        if pieces is None:
            self._pieces = pieces = list[str]()
            self._start = token.start()
        pieces.append(piece)
        self._bare &= bare

    def _finish(self, at: int) -> None:
        if self._pieces is None:
            return
        option = self._text.startswith("--", self._start)
        gap = self._text[self._last_end : self._start]
        self.words.append(Word("".join(self._pieces), self._start - self._begin, gap, self._bare, option))
        self._pieces, self._bare, self._last_end = None, True, at

    def _document(self, token: re.Match[str]) -> None:
        """A here-document is one word: the lines up to its tag. Without such a line the signs are what they are."""
        line_end = self._after_line or self._text.find("\n", token.end())
        found = self._splitter.document(token["tag"], line_end) if line_end > 0 else None
        if found is None:
            self._add(token, token[0])
            return
        self._finish(token.start())
        body = self._text[line_end + 1 : found[0]]
        body = re.sub(r"^\t+", "", body, flags=re.MULTILINE) if token["dash"] else body
        self._add(token, body, bare=False)
        self._finish(token.end())
        self._after_line = found[1]


def quote(text: str) -> str:
    """The word as it must be written to be read as `text`: in one line, plain where it can be."""
    if _SAFE.fullmatch(text):
        return text
    if _CONTROL.search(text):
        coded = text.replace("\\", "\\\\").replace("'", "\\'")
        return "$'" + coded.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r") + "'"
    if "'" not in text:
        return f"'{text}'"
    return '"' + re.sub(r'([\\"$`])', r"\\\1", text) + '"'


def _unquoted(kind: str, text: str) -> str:
    if kind == "coded":
        return _CODED.sub(lambda match: _CODES.get(match[1], match[1]), text)
    if kind == "double":
        return _ESCAPED_IN_DOUBLE.sub(lambda match: match[1].strip("\n"), text)
    return text
