"""MiniMax's calls with an element for each argument: `<invoke name="NAME"><city>Rome</city></invoke>`.

A token stands before each tag, so that a value may hold tags.
"""

import re
from typing import Any, Final

from denizen.actions.recovery.source import Reading, Source, Wish
from denizen.actions.recovery.values import DEPTH, Written

_TOKEN: Final = "]<]minimax[>["  # noqa: S105 (a special token of the model)
_CALL: Final = re.compile(re.escape(_TOKEN) + r"<invoke name=\"(?P<name>[^\"<>\n]{1,128})\">")
_TAG: Final = re.compile(re.escape(_TOKEN) + r"<(?P<end>/?)(?P<name>[^<>\s/]{1,128})>")


def nested(source: Source, at: int) -> Reading | None:
    """The call that the element at `at` is."""
    call = source.match(_CALL, at)
    if call is None:
        return None
    found = _inside(source, call.end(), "invoke", 0)
    if found is None:
        return None
    inner, end = found
    return Reading([Wish(call["name"], inner if isinstance(inner, dict) else {})], end)


def _inside(source: Source, at: int, name: str, depth: int) -> tuple[Any, int] | None:
    """What the element `name` holds, and where it ends: its text, or what its elements are called and hold."""
    children: list[tuple[str, Any]] = []
    while depth < DEPTH:
        begin = source.find(_TOKEN, at)
        tag = source.match(_TAG, begin) if begin >= 0 else None
        if tag is None:
            return None
        if tag["end"]:
            whole = _gathered(children) if children or name == "invoke" else Written(source.text[at:begin])
            return (whole, tag.end()) if tag["name"] == name else None
        found = _inside(source, tag.end(), tag["name"], depth + 1)
        if found is None:
            return None
        children.append((tag["name"], found[0]))
        at = found[1]
    return None


def _gathered(children: list[tuple[str, Any]]) -> dict[str, Any]:
    """The elements by name; those of one name are a list, and so are `item`s."""
    values: dict[str, list[Any]] = {}
    for name, value in children:
        values.setdefault(name, []).append(value)
    return {name: held if len(held) > 1 or name == "item" else held[0] for name, held in values.items()}
