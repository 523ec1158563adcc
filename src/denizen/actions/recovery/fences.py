"""Code in a text: spans between back-ticks, and fenced blocks."""

import re
from typing import Final

_FENCE: Final = re.compile(r"[ \t]{0,40}(`{3,}|~{3,})")
FENCE_END: Final = re.compile(r"^[ \t]{0,40}(`{3,}|~{3,})[ \t]{0,40}$", re.MULTILINE)
INFO: Final = re.compile(
    r"[ \t]{0,9}(?:(?i:json|xml|tool_?(?:code|calls?|use)|tool|function_?calls?|action))?[ \t]{0,9}\n"
)
"""What stands behind the first back-ticks of a fence that may hold calls."""
CALL_INFO: Final = re.compile(r"\s*(?i:tool_?(?:code|calls?|use)|tool|function_?calls?|action)\s*")
"""What says there that it does."""
CALL_LIST: Final = re.compile(r"\s*\[\s*\{")
"""How a fence begins that does so as xLAM and Command R have it: with a list of calls."""


def code_spans(text: str) -> dict[int, int]:
    """Where the code span ends that begins with the back-ticks at a place."""
    ends: dict[int, int] = {}
    spans: dict[int, int] = {}
    for run in reversed([*re.finditer("`+", text)]):
        length = run.end() - run.start()
        spans[run.start()] = ends.get(length, 0)
        ends[length] = run.end()
    return spans


def only_fences(text: str) -> bool:
    """Whether a text is nothing but fences."""
    ticks = ""
    for line in text.split("\n"):
        mark = FENCE_END.match(line) if ticks else _FENCE.match(line)
        if ticks:
            ticks = "" if mark and mark[1].startswith(ticks) else ticks
        elif mark:
            ticks = mark[1]
        elif line.strip():
            return False
    return True
