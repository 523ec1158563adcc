"""Reads JSON that others wrote: fast, then once more with patience for what servers and models get wrong."""

import json
import re
from typing import Any, Final, TypeVar

import msgspec

INVALID_JSON: Final = "invalid_json"
"""The only argument of a call whose arguments weren't a JSON object; its value is what the model wrote instead."""

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for bytes that it can't read as they are."""

_T = TypeVar("_T")
_HALF_A_PAIR: Final = re.compile(
    r"\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f][0-9a-f]{2})|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}", re.IGNORECASE
)


def decode(decoder: msgspec.json.Decoder[_T], data: bytes) -> _T:
    """The value. Bytes that aren't UTF-8, control characters and halves of surrogate pairs are put right.

    Raises ValueError where it is no JSON of that type.
    """
    try:
        return decoder.decode(data)
    except UNREADABLE:
        value = _patiently(data.decode("utf-8", "replace"))
        return msgspec.convert(value, decoder.type, strict=False)


def arguments(text: str) -> dict[str, Any]:
    """The arguments of a call; nothing at all means none."""
    try:
        value = _arguments(text) if text.strip() else {}
    except ValueError:
        return {INVALID_JSON: text}
    return value if isinstance(value, dict) else {INVALID_JSON: text}


def _arguments(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return _patiently(text)


def _patiently(text: str) -> Any:
    try:
        return json.loads(_HALF_A_PAIR.sub(r"\\ufffd", text), strict=False)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
