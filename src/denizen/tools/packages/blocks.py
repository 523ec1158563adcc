"""YAML as package managers write it: indented keys with plain or quoted values, and tables in braces on one line.

It isn't YAML: lists, anchors, block texts and whatever else a person might write is passed over.
"""

import re
from typing import Any

_LINE = re.compile(
    r"""(?P<indent> *)(?P<key>"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#'"-][^\s#]*):(?: +(?P<value>\S.*))?"""
)
_DEEPEST = 20


def read_blocks(source: str) -> dict[str, Any]:
    """The keys of a file, with texts or further keys below them."""
    top: dict[str, Any] = {}
    open_ones: list[tuple[int, dict[str, Any]]] = [(-1, top)]
    for line in source.splitlines():
        found = _LINE.fullmatch(line.rstrip())
        if not found:
            continue
        indent = len(found["indent"])
        while open_ones[-1][0] >= indent:
            open_ones.pop()
        key, inside = _unquoted(found["key"]), open_ones[-1][1]
        if found["value"]:
            inside[key] = _value(found["value"])
        elif len(open_ones) < _DEEPEST:
            below: dict[str, Any] = {}
            inside[key] = below
            open_ones.append((indent, below))
    return top


def _unquoted(text: str) -> str:
    """A text without its quotes."""
    quote = text[:1]
    if len(text) < 2 or quote not in {"'", '"'} or text[-1] != quote:
        return text
    return text[1:-1].replace("''", "'") if quote == "'" else text[1:-1].replace('\\"', '"')


def _value(text: str) -> Any:
    """`{a: b, c: d}` as a table, all else as text."""
    if not (text.startswith("{") and text.endswith("}")):
        return _unquoted(text)
    pairs = (pair.partition(": ") for pair in text[1:-1].split(", "))
    return {_unquoted(key.strip()): _unquoted(value.strip()) for key, mark, value in pairs if mark}
