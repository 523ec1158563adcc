"""The forms of calls, in the order in which they are tried where one may stand.

A form reads one call, or a list of them, exactly where it is asked to, and says where it ends; a new one is one
function here. `OPENERS` are recognised wherever they stand; the others need one of the vocabulary's marks before them.
"""

from collections.abc import Callable, Sequence
from typing import Final

from denizen.actions.recovery.forms.functions import angled, functions, prefixed, printed
from denizen.actions.recovery.forms.names import acted, addressed, lined, separated
from denizen.actions.recovery.forms.nested import nested
from denizen.actions.recovery.forms.objects import bare_objects, objects
from denizen.actions.recovery.forms.pairs import elements, pairs
from denizen.actions.recovery.forms.tagged import tagged
from denizen.actions.recovery.source import Reading, Source
from denizen.actions.recovery.vocabulary import ACTION, CALLED, NAME

__all__ = ["BARE_LINES", "FORMS_AT_LINES", "IN_MARKS", "OPENERS", "UNMARKED", "Form", "bare_objects", "functions"]

Form = Callable[[Source, int], Reading | None]

UNMARKED: Final[Sequence[Form]] = (nested, tagged, elements, addressed, angled)
"""Forms that can't be mistaken for anything else."""

IN_MARKS: Final[Sequence[Form]] = (*UNMARKED, objects, separated, prefixed, printed, functions, lined, pairs)
"""Forms between marks."""

FORMS_AT_LINES: Final[Sequence[Form]] = (prefixed, lined, acted)
"""Forms that begin a line."""

OPENERS: Final = (
    r"<(?:[\w-]{1,20}:|｜DSML｜)?(?:function|invoke)(?: ?=|\s{0,3}name\s?=)"
    r"|\]<\]minimax\[>\[<invoke "
    r"|<\|open\|>\s?call tool="
    r"|<call:"
    r"|(?:(?:analysis|commentary)\s?)?\bto=functions\."
)
"""Where the unmarked forms begin."""

BARE_LINES: Final = (
    rf"^(?:{CALLED}:\s?(?={NAME}\s?[({{])"
    rf"|{ACTION}(?={NAME}[ \t]{{0,9}}\nAction Input ?:)"
    rf"|>>>(?={NAME}\n\s?\{{))"
)
"""Where the bare forms begin, at the beginning of a line."""
