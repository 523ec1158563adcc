"""Decodes JSON from servers and models: strictly, then once more leniently for their usual mistakes."""

import functools
import json
import operator
import re
from typing import Annotated, Any, Final, TypeVar

import msgspec

from denizen.config.pattern import pattern
from denizen.ports.model import INVALID_JSON

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of a decoder for bytes that it can't read."""

Count = Annotated[int, msgspec.Meta(ge=0, lt=2**48)]
"""Of tokens: more, or fewer than none, isn't one."""

_T = TypeVar("_T")
_STEP: Final = pattern(r"\.(\w+)|\[(\d+)\]")
_MAX_REPAIRS: Final = 64
"""The most values that are dropped from one event."""
_LONE_SURROGATE: Final = pattern(
    r"\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f][0-9a-f]{2})|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}", re.IGNORECASE
)


def decode(decoder: msgspec.json.Decoder[_T], data: bytes) -> _T:
    """The value. Bytes that aren't UTF-8, control characters and halves of surrogate pairs are put right.

    What is null where something else should be, and counts in `usage` or `usageMetadata` that are none, are as if they
    weren't there. Raises ValueError if it isn't JSON of that type.
    """
    try:
        return decoder.decode(data)
    except UNREADABLE:
        value = _decode_leniently(data.decode("utf-8-sig", "replace"))
    for _ in range(_MAX_REPAIRS):
        try:
            return msgspec.convert(value, decoder.type, strict=False)
        except msgspec.ValidationError as error:
            path = str(error).rpartition("`$")[2]  # `.choices[0].index`
            steps = [int(index) if index else name for name, index in _STEP.findall(path)]
            place: Any = functools.reduce(operator.getitem, steps[:-1], value)
            if not steps or (place[steps[-1]] is not None and ".usage" not in path):
                raise
            del place[steps[-1]]
    raise ValueError("too much in it is null")


def word(fields: dict[str, Any], name: str) -> str:
    """A field's text; empty if it is something else, or isn't there."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def arguments(text: str) -> dict[str, Any]:
    """The arguments of a call; nothing at all, or null, means none. Some servers encode them twice."""
    try:
        value = _arguments(text) if text.strip() else {}
        value = _arguments(value) if isinstance(value, str) else {} if value is None else value
    except ValueError:
        return {INVALID_JSON: text}
    return value if isinstance(value, dict) else {INVALID_JSON: text}


def _arguments(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return _decode_leniently(text)


def _decode_leniently(text: str) -> Any:
    try:
        return json.loads(_LONE_SURROGATE.sub(r"\\ufffd", text), strict=False)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
