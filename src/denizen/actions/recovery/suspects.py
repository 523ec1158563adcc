"""Where a call may begin in a text of which only the beginning is known.

What is here is the shortest beginning that settles it, or leaves it open, of each mark of the vocabulary.
"""

import re
from collections.abc import Iterable
from typing import Final

from denizen.actions.recovery.offered import PREFIXES, Offered, Tools
from denizen.actions.recovery.vocabulary import ACTION, CALLED, CALLS, INDENT, LABEL, NAME, OBJECT, THOUGHTS

_THOUGHTS: Final = "|".join(
    [
        *(re.escape(mark) for mark in THOUGHTS if not mark.startswith("<|")),  # tokens are held as marks
        r"\A\s?(?:assistant\s?)?(?:analysis|commentary)(?![ \t]|\Z)",  # Harmony's, its tokens taken out
    ]
)
_ENDS: Final = "|".join(re.escape(mark) for mark in THOUGHTS.values())
_LETTER: Final = r"[\w▁./:\"-]"
_LINES: Final = rf"{CALLED}:\s?"
_ARGUMENT: Final = rf"\s{{0,99}}(?:[)\"'\[{{\d.+<-]|{NAME}\s{{0,9}}[=:]|(?:true|false|null|True|False|None)\b)"

_MARKS: Final = (
    rf"(?<!<)<++(?:[|｜]|{_LETTER}{{1,48}}[|｜])",
    rf"<(?:[\w-]{{1,20}}:)?(?:(?i:{CALLS})>|(?:function|invoke)(?:[\s=]|name[\s=]))",
    r"<start_function_call>|<call:",
    r"\]<\]|｜DSML｜|◁(?!/?[a-z]{0,5}\Z)",
    r"\[TOOL_|\[BEGIN FINAL RESPONSE\]",
    r"(?:\b(?:analysis|commentary)\s?)?\bto=functions\.|\bto=[\w.-]{1,128}<\||\bfunctools\[|\bfunction(?: call)?<",
    r"^(?:assistant(?::|<\|)|\]~b|<(?:SPECIAL_11|start_of_turn|seed:bos|role)>)",
    _ENDS,
)
"""What begins a call, or ends a thought that had no beginning: whatever follows may have no words."""

_NAMED: Final = (
    rf"^[ \t]{{0,3}}\[?(?P<function>{NAME})\((?={_ARGUMENT})",
    rf"^{_LINES}(?P<line>{NAME})\s?[({{]",
    rf"^{ACTION}(?P<action>{NAME})[ \t]{{0,9}}\n",
    rf"^>>>(?P<lined>{NAME})\n",
)
"""What begins a call where it names a tool."""

_UNSURE: Final = (
    rf"(?<!<)<++/?{_LETTER}{{0,48}}\Z|\]<?\Z|\[[A-Z_/ ]{{1,26}}\Z|[{{\[]\s{{0,99}}\Z",
    r"◁/?[a-z]{0,5}\Z|｜(?:D|DS|DSM|DSML)?\Z|`+\Z",
    r"^[ \t]{0,40}(?:(?:[-*+]|\d{1,3}[.)]?)[ \t]{0,9})?(?:`{1,2}|~{1,2}|(?:`{3,}|~{3,})[^`\n]*)?\Z",
    rf"^[ \t]{{0,3}}\[?{NAME}\(\s{{0,99}}(?:{NAME}\s{{0,9}})?\Z",
    rf"^(?:{_LINES}|{ACTION})(?:{NAME})?\s?\Z",
    rf"^{INDENT}{LABEL}\s{{0,9}}(?:`{{0,2}}|~{{0,2}}|(?:`{{3,}}|~{{3,}})[^`\n]*)\Z",
    rf"^>{{1,3}}(?:{NAME})?\Z",
    r"\A\s?(?:assistant\s?)?(?:analysis|commentary|final)?\Z",
    r"^ ?(?:to=[\w.-]{0,128}|function(?: call)?|assistant|\]~b?)<?\Z",
)
"""What may become one of these."""

QUICK: Final = r"[<\[\]{`\n=｜◁]"
"""Found wherever something may begin, but at the beginning of a line."""

TOKEN: Final = re.compile(rf"<(?:[|｜]{_LETTER}{{1,48}}[|｜]?|{_LETTER}{{1,48}}[|｜])>|｜DSML｜")
"""A special token, which is no word wherever it stands."""
TOKEN_BEGUN: Final = re.compile(rf"(?:<[|｜]?{_LETTER}{{0,48}}[|｜]?|｜(?:DSML|DSM|DS|D)?)\Z")

BODY: Final = re.compile(rf"\s*(?:(?P<sure>[{{\[<]|print\(|{_LINES}|{ACTION}|>>>)|(?P<word>{NAME})|\Z)")
"""How a fence begins that may hold calls."""

_HEADS: Final = (
    *(f"{word}{gap}to=functions." for word in ("analysis", "commentary", "") for gap in ("", " ")),
    *("functools[", "function call<", "assistant:", "Action :", "print("),
    *("call :", "tool_call :", "tool_code :", "tool_use :", "TOOL_CALL :", "TOOL :"),
)
"""Words that may begin a call where they begin a line, besides the tools' names."""


class Suspects:
    """What may be a call in a reply; made once for the tools that it may call.

    `marks`, `unsure`, `quick` and `fenced` are what else is one in a format of its own.
    """

    def __init__(
        self, tools: Tools, *, marks: str = "", unsure: str = "", quick: str = QUICK, fenced: str = "(?!)"
    ) -> None:
        self.offered = Offered(tools)
        self.quick = re.compile(quick)
        self.events = _events(marks, unsure)
        self.fenced = re.compile(fenced)
        names = [f"{prefix}{name}.call" for name in self.offered for prefix in ("", *PREFIXES)]
        self._beginnings = _beginnings([*_HEADS, *names])

    def begins(self, word: str) -> bool:
        """Whether a line that begins so may become a call."""
        return word in self._beginnings


def _events(marks: str, unsure: str) -> re.Pattern[str]:
    """Finds the next place where words may end; the group that matched last is its name, but for a fence's parts."""
    kinds = {
        "unsure": "|".join(filter(None, (*_UNSURE, unsure))),
        "thought": _THOUGHTS,
        "mark": "|".join(filter(None, (*_MARKS, marks))),
        "named": "|".join(_NAMED),
        "fence": rf"^{INDENT}(?P<label>{LABEL}\s{{0,9}})?(?P<ticks>`{{3,}}|~{{3,}})(?P<info>[^`\n]*)\n",
        "code": "`+",
        "begun": r"^(?!.*\bto=functions\.)[ \t]{0,3}\[?(?P<word>\w[\w.=-]{0,127}(?: [\w.=]{0,99})?)\Z",
        "object": OBJECT,
    }
    return re.compile("|".join(f"(?P<{kind}>{event})" for kind, event in kinds.items()), re.MULTILINE)


def _beginnings(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word[:length] for word in words for length in range(1, len(word) + 1))
