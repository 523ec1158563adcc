"""Calls as elements: `<function=NAME><parameter=KEY>VALUE</parameter></function>` and its relatives.

Qwen, Nemotron, Step (`<function=…>`), Functionary and Llama (`<function=NAME>{JSON}</function>`), MiniCPM
(`<function name="…"><param name="…">`), MiniMax, DeepSeek and Muse (`<invoke name="…"><parameter name="…">`,
with or without a namespace).
"""

import re
from collections.abc import Set
from typing import Any, Final

from denizen.actions.recovery.source import Reading, Source, Wish
from denizen.actions.recovery.values import Unreadable, Values, Verbatim, Written

_NAMESPACE: Final = r"(?P<namespace>[\w-]{1,20}:|｜DSML｜)?"
_NAMED: Final = r"(?: ?=|\s{0,3}name\s?=\s?)[\"']?(?P<name>[^\"'<>\s]{1,128})[\"']?"
_CALL: Final = re.compile(rf"<{_NAMESPACE}(?P<tag>function|invoke){_NAMED}\s?>")
_ARGUMENT: Final = re.compile(
    rf"<(?:[\w-]{{1,20}}:|｜DSML｜)?(?P<tag>param(?:eter)?){_NAMED}(?P<more> [^<>\n]{{0,80}})?>"
)
_CDATA: Final = "<![CDATA["


def tagged(source: Source, at: int) -> Reading | None:
    """The call that the element at `at` is."""
    call = source.match(_CALL, at)
    if call is None:
        return None
    end = f"</{call['namespace'] or ''}{call['tag']}>"
    begin = source.past_space(call.end())
    if source.text.startswith("{", begin):
        return _with_json(source, call["name"], begin, end)
    args: dict[str, Any] = {}
    at = begin
    others = {*source.parameters(call["name"])}
    while argument := source.match(_ARGUMENT, at):
        others.discard(argument["name"])
        args[argument["name"]], at = _value(source, argument, end, others)
        at = source.past_space(at)
    if source.text.startswith(end, at):
        return Reading([Wish(call["name"], args)], at + len(end))
    return Reading([Wish(call["name"], args)], at) if args or at == len(source.text) else None


def _with_json(source: Source, name: str, begin: int, end: str) -> Reading | None:
    values = Values(source, begin)
    try:
        args = values.value()
    except Unreadable:
        return None
    at = source.past_space(values.at)
    return Reading([Wish(name, args)], at + len(end) if source.text.startswith(end, at) else values.at)


def _value(source: Source, argument: re.Match[str], last: str, others: Set[str]) -> tuple[str, int]:
    """What the argument holds, and where it ends: at its end tag or, where that is missing, at the next tag.

    It is missing, too, where one of the `others` that the tool takes begins before it.
    """
    text, begin, tag = source.text, argument.end(), argument["tag"]
    if text.startswith(_CDATA, begin) and (inner := source.find("]]>", begin)) >= 0:
        begin += len(_CDATA)
        close = source.find("</", inner)
        return Verbatim(text[begin:inner]), _past(source, inner + 3 if close < 0 else close)
    close = _close(source, tag, argument, begin)
    following = source.find(argument[0][: argument[0].index(tag)] + tag, begin)
    other = source.match(_ARGUMENT, following) if 0 <= following < close else None
    if close < 0 or (other and other["name"] in others):
        ends = [source.find(f"<{tag}", begin), source.find(last, begin)]
        close = min([end for end in ends if end >= 0], default=len(text))
        return Written(text[begin:close].strip()), close
    value = text[begin:close]
    if value.startswith("\n"):
        value = value[1:].removesuffix("\n")
    kind = Verbatim if 'string="true"' in (argument["more"] or "") else Written
    return kind(value), _past(source, close)


def _close(source: Source, tag: str, argument: re.Match[str], begin: int) -> int:
    """Where the argument's end tag is, in its namespace."""
    opening = argument[0]
    return source.find(f"</{opening[1 : opening.index(tag)]}{tag}>", begin)


def _past(source: Source, close: int) -> int:
    """Behind the end tag at `close`."""
    end = source.find(">", close)
    return len(source.text) if end < 0 else end + 1
