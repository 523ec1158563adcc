"""Marks by which a text itself says that a call in it is only shown (docs/recovery.md)."""

import re
from typing import Final

from denizen.actions.recovery.scrub import scrub

_PARAGRAPH: Final = 2_000
"""Characters in which quotation marks are counted."""

_MARKS: Final = "\"'`“”„‘’«»「『"
_SPAN: Final = re.compile(r"`[^`]*`")
_CLOSED: Final = re.compile(r"(?:(?!\n\n)[^\"“”])*[\"”]")


def quoted(text: str, since: int, start: int, end: int) -> bool:
    """Whether the call from `start` to `end` is in quotation marks, or indented as code, by what is behind `since`."""
    lead = scrub(text[max(since, start - _PARAGRAPH) : start])
    if lead and lead[-1] in _MARKS:
        return True
    line = lead.rpartition("\n")[2]
    if line.isspace() and len(line.expandtabs(4)) >= 4 and "\n\n" in lead:
        return True
    paragraph = _SPAN.sub("", lead.rpartition("\n\n")[2])
    opened = paragraph.count('"') % 2 == 1 or paragraph.count("“") > paragraph.count("”")
    return opened and _CLOSED.match(text, end, end + _PARAGRAPH) is not None
