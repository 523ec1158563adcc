"""Signs that look alike: models write a plain quote or dash where a text has a typographic one."""

from difflib import SequenceMatcher

_ALIKE = str.maketrans(
    "\u2018\u2019\u201a\u201b\u2032"
    "\u201c\u201d\u201e\u201f\u2033"
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
    "\u00a0\u2002\u2003\u2007\u2009\u202f",
    "'" * 5 + '"' * 5 + "-" * 7 + " " * 6,
)
_UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_MOST_ALIGNED = 4_000_000
"""Pairs of signs that are compared."""


def plain_signs(text: str) -> str:
    """The text, as long as it is, with the plain quotes, dashes and blanks that its typographic ones look like."""
    return text.translate(_ALIKE)


def without_unseen(text: str) -> str:
    """The text without signs of no width."""
    return text.translate(_UNSEEN)


def keep_signs(there: str, old: str, new: str) -> str:
    """The new text with the signs that are `there`, which is `old` in other signs, where it says the same as `old`."""
    if len(old) * len(new) > _MOST_ALIGNED:
        return new
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return "".join(there[a:b] if what == "equal" else new[c:d] for what, a, b, c, d in steps)
