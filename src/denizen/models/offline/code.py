"""Answers about functions: who calls one, which are the longest, and the most complex."""

import re
from typing import Final, Literal

from denizen.models.offline import search
from denizen.models.offline.plan import Plan, Trouble, run
from denizen.models.offline.question import Question
from denizen.plural import counted

SHOWN = 10
"""Functions that are named unless a number is asked for."""
MOST = 50
"""Functions, or callers, that are named at most."""

_CALLERS: Final = r'.[] | "\(.caller): line \(.lines | map(tostring) | join(", "))"'
_FUNCTIONS: Final = r'.[:%d][] | "\(.file):\(.line): \(.name), %s"'
_LENGTH: Final = r'\(.lines) line\(if .lines == 1 then "" else "s" end)'
_COMPLEXITY: Final = rf"complexity \(.complexity), {_LENGTH}"


def callers(asked: Question, found: re.Match[str]) -> Plan:
    """Who calls a function, by its name; the lines that have the name where that isn't known."""
    name, path = asked.name(found["name"]), asked.place(found)
    try:
        rows = yield from run("analyze", what="callers", path=path, name=name, jq=_CALLERS)
    except Trouble:
        return (yield from search.calls(asked, found))
    places = [row for row in rows.split("\n") if row and not row.startswith("[")]
    if not places:
        return (yield from search.text(asked, found))
    more = f"\n… and {len(places) - MOST} more" if len(places) > MOST else ""
    lines = "\n".join(places[:MOST])
    where = "" if path == "." else f" in `{path}`"
    heading = f"`{name}` is called in {counted(len(places), 'place')}{where}, as far as its name tells:"
    return f"{heading}\n\n```\n{lines}{more}\n```"


def longest(asked: Question, found: re.Match[str]) -> Plan:
    """The longest functions."""
    return (yield from _ranked(asked, found, "length"))


def complicated(asked: Question, found: re.Match[str]) -> Plan:
    """The most complex functions."""
    return (yield from _ranked(asked, found, "complexity"))


def _ranked(asked: Question, found: re.Match[str], what: Literal["length", "complexity"]) -> Plan:
    path, number = asked.place(found), asked.count(found, usual=SHOWN, most=MOST)
    wanted = _FUNCTIONS % (number, _LENGTH if what == "length" else _COMPLEXITY)
    rows = yield from run("analyze", what=what, path=path, jq=wanted)
    functions = [row for row in rows.split("\n") if row and not row.startswith("[")]
    where = "" if path == "." else f" in `{path}`"
    if not functions:
        return f"I find no functions{where}."
    which = "longest" if what == "length" else "most complex"
    heading = (
        f"The {which} {counted(len(functions), 'function')}{where}"
        if len(functions) > 1
        else f"The {which} function{where}"
    )
    lines = "\n".join(functions)
    return f"{heading}:\n\n```\n{lines}\n```"
