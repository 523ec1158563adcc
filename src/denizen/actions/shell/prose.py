"""Commands whose argument is prose: where they end, and what they say."""

import re

from denizen.actions.shell.words import WHOLLY_QUOTED, Words

PROSE = frozenset({"done", "note", "ask", "memorize", "remember", "store"})
"""Commands that take what stands behind their name as a person would write it."""

_PIECE = re.compile(
    r"""
      \\[()\\]
    | "(?:\\[^\n]|[^"\\\n$]|\$(?!\())*+"
    | `[^`\n]++`
    | (?P<paren>[()])
    | [^\\"`()]++
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED_FIRST = re.compile(rf"\s*+(?:{WHOLLY_QUOTED.pattern})\s*+(?=\)|--\w)", re.DOTALL)


def end_of_prose(text: str, begin: int, words: Words) -> int:
    """Where the parenthesis stands that closes the command; -1: nowhere.

    Parentheses balance, but for those in a pair of double quotes or backticks on one line, and escaped ones. Where the
    text goes on and ends with a parenthesis too many (`$(done 1) read 2) write)`), that one closes.
    """
    if _QUOTED_FIRST.match(text, begin):
        return words.read(begin)[1]
    depth, at = 0, begin
    while piece := _PIECE.match(text, at):
        if piece["paren"]:
            depth += 1 if piece["paren"] == "(" else -1
            if depth < 0:
                return _runs_on(text, at)
        at = piece.end()
    return -1


def _runs_on(text: str, close: int) -> int:
    following = text.find("$(", close)
    rest = text[close + 1 : following if following > 0 else len(text)].rstrip()
    runs_on = rest.endswith(")") and rest.count(")") > rest.count("(")
    return close + len(rest) if runs_on else close


def plain(prose: str) -> str:
    """The prose as it is meant: an escaped parenthesis without its like loses the backslash."""
    prose = prose.strip()
    return prose if prose.count("\\(") == prose.count("\\)") else re.sub(r"\\([()])", r"\1", prose)
