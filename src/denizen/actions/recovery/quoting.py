"""Whether a call in a text is the model's own, or one that it quotes (docs/recovery.md).

What a person would not take for the model's own wish is none: what a page, a tool, a file or the user is said to say,
an example, a thing that is advised against. The sentence that leads to the call decides, and the words behind it.
"""

import re
from typing import Final

from denizen.actions.recovery.phrases import (
    AFTER,
    ANNOUNCED,
    CLAUSE,
    COLON,
    ELSEWHERE,
    EXAMPLE,
    FOLLOWS,
    LABEL,
    LINE,
    OWN,
    SAID,
    SENTENCE,
    SPAN,
    TELLS,
)
from denizen.actions.recovery.scrub import scrub

_LEAD: Final = 300
"""Characters before a call that are looked at."""

_PARAGRAPH: Final = 2_000
"""Characters in which quotation marks are counted."""

_QUOTE_MARKS: Final = "\"'`“”„‘’«»「『"


def quoted(text: str, since: int, start: int) -> bool:
    """Whether a call at `start` is a quotation, by what was said since `since`."""
    lead = scrub(text[max(since, start - _LEAD) : start])
    if lead and lead[-1] in _QUOTE_MARKS:
        return True
    line = lead.rpartition("\n")[2]
    indented = line.isspace() and len(line.expandtabs(4)) >= 4 and "\n\n" in lead
    return (
        indented
        or LINE.match(line) is not None
        or _in_quotation_marks(text[max(since, start - _PARAGRAPH) : start])
        or _leads_to_quotation(lead)
    )


def _in_quotation_marks(lead: str) -> bool:
    paragraph = SPAN.sub("", lead.rpartition("\n\n")[2])
    return paragraph.count('"') % 2 == 1 or paragraph.count("“") > paragraph.count("”")


def quoted_behind(text: str, end: int) -> bool:
    """Whether the words behind a call speak about it: `… is how it looks`."""
    return AFTER.match(text, end) is not None


def announced(lead: str) -> bool:
    """Whether a short text before a fence says that the model now acts: one paragraph, in the first person."""
    lead = lead.strip()
    return (
        len(lead) <= _LEAD
        and "\n\n" not in lead
        and ANNOUNCED.match(lead) is not None
        and not (EXAMPLE.search(lead) or TELLS.search(lead) or _leads_to_quotation(lead))
    )


def _leads_to_quotation(lead: str) -> bool:
    """Whether the paragraph is another's words, or the last sentence speaks of such or of an example."""
    apart = lead.endswith("\n\n") and not lead.rstrip().endswith(":")
    lead = SPAN.sub("`", lead.rstrip())
    *before, last = SENTENCE.split(lead[_paragraph(lead) :])
    if not apart and (_announces(last) or any(_announces(f"{sentence} …") for sentence in before)):
        return True
    unfinished = _sentence(lead + " ")
    sentence = unfinished or _sentence(lead)
    if OWN.match(_last(CLAUSE, sentence.rstrip(":,;— "))):
        return False
    if SAID.search(sentence) and FOLLOWS.search(sentence):
        return True
    return bool(unfinished) and (_speaks_of_another(unfinished) or EXAMPLE.search(unfinished) is not None)


def _announces(sentence: str) -> bool:
    """Whether the words that stand behind a colon of the sentence are another's, or an example."""
    colons = [colon for colon in COLON.finditer(sentence) if sentence[colon.end() :].strip()]
    for colon in (*colons[:1], *colons[-1:]):
        before = sentence[: colon.end()].strip(" \t\n*_#-")
        example = sentence.startswith("\n", colon.end()) and EXAMPLE.search(before)
        if example or _speaks_of_another(before):
            return True
    return False


def _speaks_of_another(sentence: str) -> bool:
    return bool(SAID.search(sentence) or LABEL.match(sentence) or ELSEWHERE.search(sentence))


def _sentence(text: str) -> str:
    return _last(SENTENCE, text).strip(" \t\n*_#-")


def _paragraph(lead: str) -> int:
    """Where the last paragraph begins; what a colon announces belongs to the paragraph before."""
    begin = lead.rfind("\n\n")
    while begin > 0 and lead[:begin].rstrip().endswith(":"):
        begin = lead.rfind("\n\n", 0, begin)
    return max(begin, 0)


def _last(separator: re.Pattern[str], text: str) -> str:
    """What stands behind the last separator."""
    ends = [match.end() for match in separator.finditer(text)]
    return text[ends[-1] :] if ends else text
