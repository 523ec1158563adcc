"""Calls as a name, a separator and JSON: Mistral, DeepSeek, Kimi K2, Functionary, and Harmony without its tokens."""

import re
from typing import Final

from denizen.actions.recovery.source import Reading, Source, Wish
from denizen.actions.recovery.values import Unreadable, Values
from denizen.actions.recovery.vocabulary import ACTION, NAME

_NAME: Final = rf"(?P<name>{NAME})(?::\d{{1,6}})?"
_SEPARATOR: Final = (
    r"(?:\[CALL_ID\]\w{1,64}|\[ARGS\]|<[|｜]tool[▁_]sep[|｜]>|<\|tool_call_argument_begin\|>|<\|constrain\|>"
    r"|<\|message\|>|```(?:json)?|json\b)"
)
_SEPARATED: Final = re.compile(rf"(?:functions\.)?{_NAME}\s{{0,9}}(?:{_SEPARATOR}\s{{0,9}}){{1,4}}(?=\{{)")
_ADDRESSED: Final = re.compile(
    rf"(?:(?:analysis|commentary)\s?)?to=functions\.{_NAME}\s{{0,9}}(?:{_SEPARATOR}\s{{0,9}}){{0,4}}(?=\{{)"
)
_ACTION: Final = re.compile(rf"{ACTION}{_NAME}[ \t]{{0,9}}\nAction Input ?: ?(?=\{{)")
_LINE: Final = re.compile(rf"(?:>>>)?{_NAME}\n\s?(?=\{{)")
_FENCE: Final = re.compile(r"\s{0,9}```")


def separated(source: Source, at: int) -> Reading | None:
    """`NAME[ARGS]{…}`, `NAME<｜tool▁sep｜>{…}`, `functions.NAME:0<|tool_call_argument_begin|>{…}`."""
    return _read(source, _SEPARATED, at)


def addressed(source: Source, at: int) -> Reading | None:
    """`commentary to=functions.NAME json{…}`."""
    return _read(source, _ADDRESSED, at)


def acted(source: Source, at: int) -> Reading | None:
    """`Action: NAME` and `Action Input: {…}` in the next line."""
    return _read(source, _ACTION, at)


def lined(source: Source, at: int) -> Reading | None:
    """`>>>NAME` and the arguments in the next line."""
    return _read(source, _LINE, at)


def _read(source: Source, pattern: re.Pattern[str], at: int) -> Reading | None:
    match = source.match(pattern, at)
    if match is None:
        return None
    values = Values(source, match.end())
    try:
        args = values.value()
    except Unreadable:
        return None
    fence = source.match(_FENCE, values.at) if "```" in match[0] else None
    return Reading([Wish(match["name"], args)], fence.end() if fence else values.at)
