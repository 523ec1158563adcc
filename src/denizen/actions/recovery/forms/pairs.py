"""Calls as a name and pairs: GLM's `NAME<arg_key>K</arg_key><arg_value>V</arg_value>`, and Kimi K3's elements."""

import html
import re
from typing import Any, Final

from denizen.actions.recovery.source import Reading, Source, Wish
from denizen.actions.recovery.values import Verbatim, Written
from denizen.actions.recovery.vocabulary import CLOSES

_NAME: Final = re.compile(r"(?P<name>[^\s<>{}\[\]()\"'=]{1,128})\s{0,9}(?:<tool_sep>)?\s{0,9}")
_KEY: Final = re.compile(r"<(?:\w{1,20}\|)?arg_key>(?P<key>[^<>\n]{1,128})</(?:\w{1,20}\|)?arg_key>\s{0,9}")
_VALUE: Final = re.compile(r"<(?P<namespace>\w{1,20}\|)?arg_value>")
_CLOSE: Final = re.compile(CLOSES)

_CALL: Final = re.compile(r"<\|open\|>\s?call tool=\"(?P<name>[^\"<>\n]{1,128})\"[^<>\n]{0,80}<\|sep\|>")
_ARGUMENT: Final = re.compile(
    r"\s{0,9}<\|open\|>\s?argument key=\"(?P<key>[^\"<>\n]{1,128})\"(?: type=\"(?P<type>\w{1,20})\")?"
    r"[^<>\n]{0,80}<\|sep\|>"
)
_LAST: Final = re.compile(r"\s{0,9}<\|close\|>\s?call\s?<\|sep\|>")


def pairs(source: Source, at: int) -> Reading | None:
    """The call that a name with pairs behind it is; a tool's name alone in its marks is one without arguments."""
    name = source.match(_NAME, at)
    if name is None:
        return None
    args: dict[str, Any] = {}
    at = name.end()
    while key := source.match(_KEY, at):
        value = source.match(_VALUE, key.end())
        end = source.find(f"</{value['namespace'] or ''}arg_value>", value.end()) if value else -1
        if value is None or end < 0:
            return None
        following = source.find(f"<{value['namespace'] or ''}arg_key>", value.end())
        if 0 <= following < end:  # its end tag is missing
            args[key["key"]] = Written(source.text[value.end() : following].strip())
            at = following
            continue
        args[key["key"]] = Written(source.text[value.end() : end])
        at = source.past_space(source.find(">", end) + 1)
    if not args and not _alone(source, name["name"], at):
        return None
    return Reading([Wish(name["name"], args)], at)


def _alone(source: Source, name: str, at: int) -> bool:
    if at == len(source.text):
        return bool(source.tools.known(name))
    return source.match(_CLOSE, at) is not None


def elements(source: Source, at: int) -> Reading | None:
    """The call that `<|open|>call tool="NAME"<|sep|>` begins, with its arguments."""
    call = source.match(_CALL, at)
    if call is None:
        return None
    args: dict[str, Any] = {}
    at = call.end()
    while argument := source.match(_ARGUMENT, at):
        end = source.find("<|close|>argument<|sep|>", argument.end())
        if end < 0:
            return None
        following = source.find("<|open|>argument ", argument.end())
        missing = 0 <= following < end
        kind = Verbatim if argument["type"] == "string" else Written
        args[html.unescape(argument["key"])] = kind(source.text[argument.end() : following if missing else end])
        at = following if missing else end + len("<|close|>argument<|sep|>")
    last = source.match(_LAST, at)
    return Reading([Wish(call["name"], args)], last.end() if last else at)
