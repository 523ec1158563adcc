"""Calls one behind the other, with the marks around them."""

import re
from collections.abc import Sequence
from typing import Final

from denizen.actions.recovery.forms import IN_MARKS, UNMARKED, Form, bare_objects
from denizen.actions.recovery.source import Reading, Source, Wish
from denizen.actions.recovery.vocabulary import CLOSES, OPENS

TRAILING: Final = re.compile(rf"(?:\s{{0,99}}(?:{CLOSES}))+")
"""Marks behind a call."""

EDGE: Final = re.compile(rf"{OPENS}|{CLOSES}")
_MARK: Final = re.compile(rf"(?P<open>{OPENS})|(?P<close>{CLOSES})")
_BETWEEN: Final = re.compile(r"\s*[;,]?\s*")
_MORE: Final = (*UNMARKED, bare_objects)
"""Forms that may follow a call without a mark."""


def read_block(source: Source, at: int, forms: Sequence[Form], more: Sequence[Form] = _MORE) -> tuple[list[Wish], int]:
    """The calls that begin at `at`, and where they end; without any, where the marks end that stand there.

    Without a mark, the first is in one of `forms`, those behind it in one of `more`.
    """
    wishes: list[Wish] = []
    end, within = at, False
    while True:
        at, opened = _past_marks(source, end, between=bool(wishes))
        within = within if opened is None else opened
        found = _first(source, IN_MARKS if within else more if wishes else forms, at)
        if found is None or all(wish.args is None for wish in found.wishes):
            break
        _word(source, found.wishes, at, found.end)
        wishes += found.wishes
        end = found.end
    if not wishes:
        return [], at
    trailing = source.match(TRAILING, end)
    return wishes, trailing.end() if trailing else end


def _word(source: Source, wishes: Sequence[Wish], start: int, end: int) -> None:
    """Give each of the calls its wording: from its name to the last bracket before the next one's."""
    for wish, following in zip(wishes, [*wishes[1:], None], strict=True):
        start = max(source.text.find(_name(source, wish), start, end), start)
        after = source.text.find(_name(source, following), start + 1, end) if following else -1
        piece = source.text[start : end if after < 0 else after]
        wish.wording = piece if after < 0 else piece[: max(map(piece.rfind, ")]}")) + 1]
        start = end if after < 0 else after


def _name(source: Source, wish: Wish) -> str:
    return source.tools.known(wish.name) or wish.name


def _past_marks(source: Source, at: int, *, between: bool) -> tuple[int, bool | None]:
    """Behind the marks at `at`, and whether the last of them lets a call begin; None: there is none."""
    opened = None
    while True:
        space = source.match(_BETWEEN, at) if between else None
        at = space.end() if space else source.past_space(at)
        mark = source.match(_MARK, at)
        if mark is None:
            return at, opened
        at, opened = mark.end(), mark["open"] is not None


def _first(source: Source, forms: Sequence[Form], at: int) -> Reading | None:
    readings = (form(source, at) for form in forms)
    return next((reading for reading in readings if reading), None)
