"""Splitting a command into words as a shell does, but with nothing expanded; and quoting a word."""

import re
from bisect import bisect_left
from functools import cached_property

import msgspec

from denizen.config.pattern import pattern

_TOKEN = pattern(
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
_LINE_WITH_ONE_WORD = pattern(r"^[ \t]*+(?P<tag>[A-Za-z_]\w*+)[ \t\r]*+(?=\)|$)", re.MULTILINE)
_ESCAPED_IN_DOUBLE = pattern(r'\\([\\"$`\n])')
_CODED = pattern(r"\\(.)", re.DOTALL)
_CODES = {"n": "\n", "t": "\t", "r": "\r"}
_SPECIAL = " \t'\"\\()$`<"
"""What a backslash makes a plain sign; before any other it is one itself."""
_SAFE = pattern(r"(?!--)[\w@%+=:,./^-]+")
_CONTROL = pattern(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
WHOLLY_QUOTED = pattern(r"""\$'(?:\\.|[^'\\])*+'|"(?:\\.|[^"\\])*+"|'[^']*+'""", re.DOTALL)
"""A word of which everything is within one pair of quotes."""


class Word(msgspec.Struct, frozen=True):
    """A word without its quotes.

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
    """Reads words from any place of a text, in linear time."""

    def __init__(self, text: str) -> None:
        self._text = text

    def read(self, begin: int) -> tuple[list[Word], int | None]:
        """The words from there to the parenthesis that closes the command, and where that is (None: nowhere)."""
        text = self._text
        words: list[Word] = []
        pieces: list[str] = []  # of the word that is read; an empty one counts, too
        start = last_end = at = begin
        bare, depth = True, 0
        end: int | None = None
        after_line = 0  # where the text goes on after the here-documents of this line

        def finish(at: int) -> None:
            nonlocal bare, last_end
            if pieces:
                gap, option = text[last_end:start], text.startswith("--", start)
                words.append(Word("".join(pieces), start - begin, gap, bare, option))
                pieces.clear()
                bare, last_end = True, at

        while token := _TOKEN.match(text, at):
            kind = token.lastgroup or ""
            if kind == "alone":
                break
            if kind == "close" and not depth:
                end = at
                break
            at = token.end()
            between = kind in {"blank", "newline", "here"} or token[0] == "\\\n"
            document = self._document(token, after_line) if kind == "document" else None
            if between or document:
                finish(token.start())
            if between:
                bare &= kind != "here"  # what follows is one word
                if kind == "newline":
                    at, after_line = max(at, after_line), 0
                continue
            start = start if pieces else token.start()
            if document:  # one word: the lines up to its tag
                bare, after_line = False, document[1]
                pieces.append(document[0])
                finish(at)
            elif kind in {"coded", "double", "single", "inner"}:
                bare, quoted = False, token[kind]
                if kind == "coded":
                    quoted = _CODED.sub(lambda match: _CODES.get(match[1], match[1]), quoted)
                elif kind == "double":
                    quoted = _ESCAPED_IN_DOUBLE.sub(lambda match: match[1].strip("\n"), quoted)
                pieces.append(quoted)
            else:
                depth += {"open": 1, "close": -1}.get(kind, 0)
                escaped = kind == "escape" and token[0][1] in _SPECIAL
                pieces.append(token[0][1] if escaped else token[0])
        finish(at)
        return words, end

    def _document(self, token: re.Match[str], after_line: int) -> tuple[str, int] | None:
        """What the here-document holds, and where the line ends that ends it; None without a line of its tag alone."""
        line_end = after_line or self._text.find("\n", token.end())
        tag_lines = self._tag_lines.get(token["tag"], []) if line_end > 0 else []
        index = bisect_left(tag_lines, (line_end, 0))
        if index == len(tag_lines):
            return None
        last, end = tag_lines[index]
        body = self._text[line_end + 1 : last]
        return re.sub(r"^\t+", "", body, flags=re.MULTILINE) if token["dash"] else body, end

    @cached_property
    def _tag_lines(self) -> dict[str, list[tuple[int, int]]]:
        lines: dict[str, list[tuple[int, int]]] = {}
        for match in _LINE_WITH_ONE_WORD.finditer(self._text):
            lines.setdefault(match["tag"], []).append(match.span())
        return lines


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
