"""Calls as JSON: `{"name": …, "arguments": {…}}`, lists of them, and what they are called elsewhere."""

import re
from collections.abc import Iterator
from typing import Any, Final

from denizen.actions.recovery.source import Reading, Source, Wish
from denizen.actions.recovery.values import Unreadable, Values, read_whole

NAME_KEYS: Final = ("name", "function", "tool_name", "tool", "function_name", "action")
_ARGUMENTS: Final = ("arguments", "args", "parameters", "params", "input", "tool_input", "action_input", "kwargs")
_LISTS: Final = ("tool_calls", "function_call", "tool_call", "calls")
_LIST: Final = re.compile(r"\[\s{0,99}\{")
_ELEMENT: Final = re.compile(r"\}\s{0,99},\s{0,99}(?=\{)")
_NESTED: Final = {list, dict}
_OTHERS: Final = {"id", "type", "tool_call_id", "index", "call_id"}
"""Members that say nothing about the call itself."""


def objects(source: Source, at: int) -> Reading | None:
    """The calls of an object or a list in their marks."""
    for loose in (False, True):
        found = _value(source, at, loose=loose)
        if found and (wishes := [*_wishes(found[0], source, marked=True)]):
            return Reading(wishes, found[1])
    return _readable(source, at) if source.match(_LIST, at) else None


def _readable(source: Source, at: int) -> Reading | None:
    """The calls of a list of which some can't be read."""
    wishes: list[Wish] = []
    end, at = at, at + 1
    while at:
        found = _value(source, source.past_space(at), loose=False)
        wishes += (_wishes(found[0], source, marked=True) if found else ()) or [Wish("", None)]
        end = found[1] if found else end
        following = _ELEMENT.search(source.text, found[1] - 1 if found else at)
        source.spend((following.end() if following else len(source.text)) - at)
        at = following.end() if following else 0
    end = source.past_space(end)
    any_known = any(wish.args is not None and source.tools.known(wish.name) for wish in wishes)
    return Reading(wishes, end + source.text.startswith("]", end)) if any_known else None


def bare_objects(source: Source, at: int) -> Reading | None:
    """The calls of an object or a list without marks: every one names a tool, and has its arguments in place.

    A value that isn't one is passed as a whole, with no calls: what it holds is its own.
    """
    found = _value(source, at, loose=False)
    if found is None:
        return None
    value, end = found
    wishes = [*_wishes(value, source, marked=False)]
    count = len(value) if isinstance(value, list) else 1
    meant = len(wishes) >= count and all(source.tools.known(wish.name) for wish in wishes)
    return Reading(wishes if meant else [], end)


def _value(source: Source, at: int, *, loose: bool) -> tuple[Any, int] | None:
    if source.text[at : at + 1] not in {"{", "["}:
        return None
    values = Values(source, at, loose=loose)
    try:
        return values.value(), values.at
    except Unreadable:
        return None


def _wishes(value: Any, source: Source, *, marked: bool, depth: int = 0) -> Iterator[Wish]:
    if isinstance(value, list):
        for item in value if depth < 3 else ():
            yield from _wishes(item, source, marked=marked, depth=depth + 1)
    elif isinstance(value, dict):
        inner = next((value[name] for name in _LISTS if type(value.get(name)) in _NESTED), None)
        if inner is not None and depth < 3:
            yield from _wishes(inner, source, marked=True, depth=depth + 1)
        elif wish := _wish(value, source, marked=marked):
            yield wish


def _wish(value: dict[str, Any], source: Source, *, marked: bool) -> Wish | None:
    if isinstance(value.get("function"), dict):  # as the provider's own structure has it
        value = value["function"]
    key = next((key for key in NAME_KEYS if isinstance(value.get(key), str)), "")
    if not key:
        return _by_name(value) if marked else None
    holder = next((name for name in _ARGUMENTS if name in value), "")
    if not holder:
        rest = {name: item for name, item in value.items() if name != key and name not in _OTHERS}
        return Wish(value[key], rest) if marked else None
    args = _arguments(value[holder], source)
    return None if args is None else Wish(value[key], args)


def _by_name(value: dict[str, Any]) -> Wish | None:
    """`{"NAME": {…}}` (Apertus)."""
    name, args = next(iter(value.items()), ("", None))
    return Wish(name, args) if len(value) == 1 and isinstance(args, dict) else None


def _arguments(value: Any, source: Source) -> dict[str, Any] | None:
    if isinstance(value, str):
        try:
            value = read_whole(value, source) if value.strip() else None
        except Unreadable:
            return None
    if value is None:
        return {}
    return value if isinstance(value, dict) else None
