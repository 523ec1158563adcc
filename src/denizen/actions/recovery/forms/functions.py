"""Calls as program text: `[name(key='value'), other()]`, `call:name{key:value}`, `TOOL: name(key="value")`."""

import re
from typing import Any, Final

from denizen.actions.recovery.source import Reading, Source, Wish
from denizen.actions.recovery.values import Unreadable, Values
from denizen.actions.recovery.vocabulary import CALLED, NAME

_NAME: Final = re.compile(rf"\s{{0,9}}(?P<name>{NAME})\s?(?=\()")
_NEXT: Final = re.compile(rf"\)\s{{0,99}}[,\n]\s{{0,99}}(?={NAME}\s?\()|\)\s{{0,9}}(?=\])")
"""What ends a call of a list that can't be read."""
_PRINT: Final = re.compile(r"print\(\s{0,9}")
_PREFIXED: Final = re.compile(rf"(?P<angle><)?(?:{CALLED})?:\s?(?P<name>{NAME})\s?(?=[({{])")
_PREFIXED_ALONE: Final = re.compile(r"(?:call\s?)?:\s?(?P<name>[^<>\n]{1,128})(?=<)")


def functions(source: Source, at: int) -> Reading | None:
    """One call, or several in brackets."""
    return _listed(source, at) if source.text.startswith("[", at) else _one(source, at)


def printed(source: Source, at: int) -> Reading | None:
    """One call whose result would be printed: `print(name(key='value'))`."""
    before = source.match(_PRINT, at)
    found = _one(source, before.end()) if before else None
    if found is None:
        return None
    at = source.past_space(found.end)
    return Reading(found.wishes, at + 1) if source.text.startswith(")", at) else None


def angled(source: Source, at: int) -> Reading | None:
    """`<call:name(…)>`."""
    return prefixed(source, at) if source.text.startswith("<call:", at) else None


def prefixed(source: Source, at: int) -> Reading | None:
    """`call:name{…}` and `call:name(…)`; Gemma leaves its quotes away, and `call`; a name alone has no arguments."""
    match = source.match(_PREFIXED, at)
    if match is None:
        alone = source.match(_PREFIXED_ALONE, at)
        known = source.tools.known(alone["name"]) if alone else ""
        return Reading([Wish(known, {})], alone.end()) if alone and known else None
    bracket = source.text[match.end()]
    found = _try(source, match["name"], match.end(), bracket)
    if found is None:
        return None
    wish, end = found
    return Reading([wish], end + 1 if match["angle"] and source.text.startswith(">", end) else end)


def _one(source: Source, at: int) -> Reading | None:
    match = source.match(_NAME, at)
    found = _try(source, match["name"], match.end(), "(") if match else None
    return Reading([found[0]], found[1]) if found else None


def _listed(source: Source, at: int) -> Reading | None:
    wishes: list[Wish] = []
    at += 1
    while match := source.match(_NAME, at):
        found = _try(source, match["name"], match.end(), "(")
        if found is None:
            wishes.append(Wish(match["name"], None))
            following = _NEXT.search(source.text, match.end())
            source.spend((following.end() if following else len(source.text)) - match.end())
            at = following.end() if following else len(source.text)
            continue
        wishes.append(found[0])
        at = source.past_space(found[1])
        at += source.text.startswith(",", at)
    at = source.past_space(at)
    closed = source.text.startswith("]", at) or at == len(source.text)
    return Reading(wishes, min(at + 1, len(source.text))) if wishes and closed else None


def _try(source: Source, name: str, at: int, bracket: str) -> tuple[Wish, int] | None:
    """The call whose arguments begin at `at`: read strictly, or else with quotes that don't end at each quote."""
    for loose in (False, True):
        values = Values(source, at, bare=bracket == "{", loose=loose)
        try:
            args = values.value() if bracket == "{" else _arguments(values, source, name)
            return Wish(name, args), values.at
        except Unreadable:
            continue
    return None


def _arguments(values: Values, source: Source, name: str) -> dict[str, Any]:
    """The arguments in round brackets; those without a name are the tool's, in its order."""
    args: dict[str, Any] = {}
    unnamed: list[Any] = []
    values.open("(")
    while values.more("(", first=not args and not unnamed):
        key = values.key()
        if key is None:
            unnamed.append(values.value("("))
        else:
            args[key] = values.value("(")
    return _named(unnamed, args, source, name)


def _named(unnamed: list[Any], args: dict[str, Any], source: Source, name: str) -> dict[str, Any]:
    if not unnamed:
        return args
    names = [*source.parameters(name)]
    if len(unnamed) == 1 and not args and isinstance(unnamed[0], dict) and unnamed[0].keys() <= {*names}:
        return unnamed[0]
    if len(unnamed) > len(names):
        raise Unreadable
    return {**dict(zip(names, unnamed, strict=False)), **args}
