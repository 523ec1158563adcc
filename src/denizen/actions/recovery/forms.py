"""The forms of calls, one table of them, and calls one after the other with the marks around them.

A form reads one call, or a list of them, exactly where it is asked to, and says where it ends. A new one is a function
and a row in `FORMS`.
"""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from denizen.actions.recovery.marks import ACTION, CALLED, CLOSES, NAME, OPENS
from denizen.actions.recovery.scanner import Found, Scanner, WrittenCall
from denizen.actions.recovery.values import MAX_DEPTH, Unreadable, Untyped, Values, Verbatim, read_object, read_whole

# JSON: `{"name": …, "arguments": {…}}`, lists of them, and what they are called elsewhere

NAME_KEYS: Final = ("name", "function", "tool_name", "tool", "function_name", "action")
_ARGUMENT_KEYS: Final = ("arguments", "args", "parameters", "params", "input", "tool_input", "action_input", "kwargs")
_LIST_KEYS: Final = ("tool_calls", "function_call", "tool_call", "calls")
_OTHER_KEYS: Final = {"id", "type", "tool_call_id", "index", "call_id"}
_OBJECT_LIST: Final = re.compile(r"\[\s{0,99}\{")
_NEXT_OBJECT: Final = re.compile(r"\}\s{0,99},\s{0,99}(?=\{)")


def _objects(scanner: Scanner, at: int) -> Found | None:
    """The calls of an object or a list in their marks."""
    for loose in (False, True):
        found = _value(scanner, at, loose=loose)
        if found and (calls := [*_calls_in(found[0], scanner, marked=True)]):
            return Found(calls, found[1])
    if not scanner.match(_OBJECT_LIST, at):
        return None
    calls = list[WrittenCall]()  # some can't be read
    end, at = at, at + 1
    while at < len(scanner.text):
        found = _value(scanner, scanner.past_space(at))
        calls += (_calls_in(found[0], scanner, marked=True) if found else ()) or [WrittenCall("", None)]
        end = found[1] if found else end
        at = scanner.past(_NEXT_OBJECT, found[1] - 1 if found else at)
    end = scanner.past_space(end)
    any_known = any(call.args is not None and scanner.tools.find(call.name) for call in calls)
    return Found(calls, end + scanner.text.startswith("]", end)) if any_known else None


def bare_objects(scanner: Scanner, at: int) -> Found | None:
    """The calls of an object or a list without marks: every one names a tool, and has its arguments in place.

    A value that isn't one is passed as a whole, with no calls: what it holds is its own.
    """
    found = _value(scanner, at)
    if found is None:
        return None
    value, end = found
    calls = [*_calls_in(value, scanner, marked=False)]
    count = len(value) if isinstance(value, list) else 1
    meant = len(calls) >= count and all(scanner.tools.find(call.name) for call in calls)
    return Found(calls if meant else [], end)


def _value(scanner: Scanner, at: int, *, loose: bool = False) -> tuple[Any, int] | None:
    if scanner.text[at : at + 1] not in {"{", "["}:
        return None
    values = Values(scanner, at, loose=loose)
    try:
        return values.value(), values.at
    except Unreadable:
        return None


def _calls_in(value: Any, scanner: Scanner, *, marked: bool, depth: int = 0) -> Iterator[WrittenCall]:
    if isinstance(value, list):
        for item in value if depth < 3 else ():
            yield from _calls_in(item, scanner, marked=marked, depth=depth + 1)
    elif isinstance(value, dict):
        inner = next((value[key] for key in _LIST_KEYS if type(value.get(key)) in (list, dict)), None)
        if inner is not None and depth < 3:
            yield from _calls_in(inner, scanner, marked=True, depth=depth + 1)
        elif call := _call_of(value, scanner, marked=marked):
            yield call


def _call_of(value: dict[str, Any], scanner: Scanner, *, marked: bool) -> WrittenCall | None:
    if isinstance(value.get("function"), dict):  # as the provider's own structure has it
        value = value["function"]
    key = next((key for key in NAME_KEYS if isinstance(value.get(key), str)), "")
    holder = next((name for name in _ARGUMENT_KEYS if name in value), "")
    if not key:  # {"NAME": {…}} (Apertus)
        name, args = next(iter(value.items()), ("", None))
        return WrittenCall(name, args) if marked and len(value) == 1 and isinstance(args, dict) else None
    if not holder:
        rest = {name: item for name, item in value.items() if name != key and name not in _OTHER_KEYS}
        return WrittenCall(value[key], rest) if marked else None
    args = value[holder]
    if isinstance(args, str):
        try:
            args = read_whole(args, scanner) if args.strip() else None
        except Unreadable:
            return None
    if args is None:
        return WrittenCall(value[key], {})
    return WrittenCall(value[key], args) if isinstance(args, dict) else None


# A name, a separator and JSON: Mistral, DeepSeek, Kimi K2, Functionary, and Harmony without its tokens

_NAMED: Final = rf"(?P<name>{NAME})(?::\d{{1,6}})?"
_SEPARATOR: Final = (
    r"(?:(?:\[CALL_ID\]\w{1,64}|\[ARGS\]|<[|｜]tool[▁_]sep[|｜]>|<\|tool_call_argument_begin\|>|<\|constrain\|>"
    r"|<\|message\|>|```(?:json)?|json\b)\s{0,9})"
)
_FENCE: Final = re.compile(r"\s{0,9}```")


def _json_after(pattern: str) -> Callable[[Scanner, int], Found | None]:
    """The form of calls that are what the pattern says, with the name in it, and an object."""
    before = re.compile(rf"{pattern}(?=\{{)")

    def read(scanner: Scanner, at: int) -> Found | None:
        match = scanner.match(before, at)
        found = read_object(scanner, match.end()) if match else None
        if match is None or found is None:
            return None
        fence = scanner.match(_FENCE, found[1]) if "```" in match[0] else None
        return Found([WrittenCall(match["name"], found[0])], fence.end() if fence else found[1])

    return read


# Program text: `[name(key='value'), other()]`, `call:name{key:value}`, `TOOL: name(key="value")`

_FUNCTION: Final = re.compile(rf"\s{{0,9}}(?P<name>{NAME})\s?(?=\()")
_NEXT_FUNCTION: Final = re.compile(rf"\)\s{{0,99}}[,\n]\s{{0,99}}(?={NAME}\s?\()|\)\s{{0,9}}(?=\])")
"""What ends a call of a list that can't be read."""
_PRINT: Final = re.compile(r"print\(\s{0,9}")
_PREFIXED: Final = re.compile(rf"(?P<angle><)?(?:{CALLED})?:\s?(?P<name>{NAME})\s?(?=[({{])")
_PREFIXED_ALONE: Final = re.compile(r"(?:call\s?)?:\s?(?P<name>[^<>\n]{1,128})(?=<)")


def functions(scanner: Scanner, at: int) -> Found | None:
    """One call, or several in brackets."""
    if not scanner.text.startswith("[", at):
        match = scanner.match(_FUNCTION, at)
        return _function(scanner, match["name"], match.end()) if match else None
    calls: list[WrittenCall] = []
    at += 1
    while match := scanner.match(_FUNCTION, at):
        found = _function(scanner, match["name"], match.end())
        if found is None:
            calls.append(WrittenCall(match["name"], None))
            at = scanner.past(_NEXT_FUNCTION, match.end())
            continue
        calls += found.calls
        at = scanner.past_space(found.end)
        at += scanner.text.startswith(",", at)
    at = scanner.past_space(at)
    closed = scanner.text.startswith("]", at) or at == len(scanner.text)
    return Found(calls, min(at + 1, len(scanner.text))) if calls and closed else None


def _printed(scanner: Scanner, at: int) -> Found | None:
    """One call whose result would be printed: `print(name(key='value'))`."""
    before = scanner.match(_PRINT, at)
    match = scanner.match(_FUNCTION, before.end()) if before else None
    found = _function(scanner, match["name"], match.end()) if match else None
    end = scanner.past_space(found.end) if found else 0
    return Found(found.calls, end + 1) if found and scanner.text.startswith(")", end) else None


def _prefixed(scanner: Scanner, at: int) -> Found | None:
    """`call:name{…}` and `call:name(…)`; Gemma leaves its quotes away, and `call`; a name alone has no arguments."""
    match = scanner.match(_PREFIXED, at)
    if match is None:
        alone = scanner.match(_PREFIXED_ALONE, at)
        known = scanner.tools.find(alone["name"]) if alone else ""
        return Found([WrittenCall(known, {})], alone.end()) if alone and known else None
    found = _function(scanner, match["name"], match.end())
    return found and Found(found.calls, found.end + bool(match["angle"] and scanner.text.startswith(">", found.end)))


def _angled(scanner: Scanner, at: int) -> Found | None:
    """`<call:name(…)>`."""
    return _prefixed(scanner, at) if scanner.text.startswith("<call:", at) else None


def _function(scanner: Scanner, name: str, at: int) -> Found | None:
    """The call whose arguments begin at `at`: read strictly, or with quotes that don't end at each quote.

    The second where the first fails, or finds a name that the tool doesn't take, as in `query="a, "b=1", c"`.
    """
    parameters = {*scanner.tools.parameters(name)}
    best: Found | None = None
    for loose in (False, True):
        if scanner.text.startswith("{", at):
            found = read_object(scanner, at, bare=True, loose=loose)
        else:
            found = _arguments(scanner, name, Values(scanner, at, loose=loose))
        if found:
            best = best or Found([WrittenCall(name, found[0])], found[1])
            if not parameters or found[0].keys() <= parameters:
                return Found([WrittenCall(name, found[0])], found[1])
    return best


def _arguments(scanner: Scanner, name: str, values: Values) -> tuple[dict[str, Any], int] | None:
    """The arguments in round brackets; those without a name are the tool's, in its order."""
    args: dict[str, Any] = {}
    unnamed: list[Any] = []
    try:
        values.open("(")
        while values.more("(", first=not args and not unnamed):
            key = values.key()
            value = values.value("(")
            if key is None:
                unnamed.append(value)
            else:
                args[key] = value
    except Unreadable:
        return None
    names = [*scanner.tools.parameters(name)] if unnamed else []
    if len(unnamed) == 1 and not args and isinstance(unnamed[0], dict) and unnamed[0].keys() <= {*names}:
        return unnamed[0], values.at
    if len(unnamed) > len(names):
        return None
    return {**dict(zip(names, unnamed, strict=False)), **args}, values.at


# Elements: `<function=NAME><parameter=KEY>VALUE</parameter></function>`, with a namespace, with a name as an attribute;
# GLM's `NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>`; Kimi K3's; and MiniMax M3's, one in another

_ATTRIBUTE: Final = r"(?: ?=|\s{0,3}name\s?=)[\"']?(?P<%s>[^\"'<>\s]{1,128})[\"']?"
_TAGGED: Final = re.compile(rf"<(?P<tag>(?:[\w-]{{1,20}}:|｜DSML｜)?(?:function|invoke)){_ATTRIBUTE % 'name'}\s?>")
_PAIRED: Final = re.compile(r"(?P<name>[^\s<>{}\[\]()\"'=`]{1,128})\s{0,9}(?:<tool_sep>)?\s{0,9}")
_CLOSE: Final = re.compile(CLOSES)
_KIMI: Final = re.compile(r"<\|open\|>\s?call tool=\"(?P<name>[^\"<>\n]{1,128})\"[^<>\n]{0,80}<\|sep\|>")
_KIMI_END: Final = re.compile(r"\s{0,9}<\|close\|>\s?call\s?<\|sep\|>")
_CDATA: Final = "<![CDATA["
_TAG_END: Final = re.compile(">")


class _Argument(NamedTuple):
    """How a family writes an argument.

    `begin` has groups for the `key`, `more` attributes, and the `tag` that `end` and `following` name. `following`
    begins the next argument: before this one's end it means that the end is missing. `open_ended`: the end of the call
    or the text ends an argument, too, and a line end after each of its tags isn't part of it.
    """

    begin: re.Pattern[str]
    end: str
    following: str
    open_ended: bool = False


_PARAMETER: Final = _Argument(
    re.compile(
        rf"<(?P<tag>(?:[\w-]{{1,20}}:|｜DSML｜)?param(?:eter)?){_ATTRIBUTE % 'key'}(?P<more> [^<>\n]{{0,80}})?>"
    ),
    "</{}>",
    "<{}",
    open_ended=True,
)
_PAIR: Final = _Argument(
    re.compile(
        r"<(?:\w{1,20}\|)?arg_key>(?P<key>[^<>\n]{1,128})</(?:\w{1,20}\|)?arg_key>\s{0,9}(?P<more>)"
        r"(?:<(?P<tag>(?:\w{1,20}\|)?)arg_value>)?"
    ),
    "</{}arg_value>",
    "<{}arg_key>",
)
_KIMI_ARGUMENT: Final = _Argument(
    re.compile(
        r"\s{0,9}<\|open\|>\s?argument key=\"(?P<key>[^\"<>\n]{1,128})\"(?P<more>[^<>\n]{0,99})<\|sep\|>(?P<tag>)"
    ),
    "<|close|>argument<|sep|>",
    "<|open|>argument ",
)


def _elements(
    scanner: Scanner, at: int, written: _Argument, name: str, last: str = ""
) -> tuple[dict[str, Any], int] | None:
    """The arguments from `at` on, and where they end; None if one is cut off. `last` ends the call."""
    args: dict[str, Any] = {}
    others = {*scanner.tools.parameters(name)}  # not given yet
    while argument := scanner.match(written.begin, at):
        key, tag, begin = html.unescape(argument["key"]), argument["tag"], argument.end()
        if tag is None:
            return None
        others.discard(key)
        if scanner.text.startswith(_CDATA, begin) and (inner := scanner.find("]]>", begin)) >= 0:
            args[key] = Verbatim(scanner.text[begin + len(_CDATA) : inner])
            end = scanner.find("</", inner)
            at = scanner.past_space(scanner.past(_TAG_END, inner + 3 if end < 0 else end))
            continue
        close = written.end.format(tag)
        end = scanner.find(close, begin)
        following = scanner.find(written.following.format(tag), begin)
        if 0 <= following < end and written.open_ended:
            another = scanner.match(written.begin, following)
            following = following if another and another["key"] in others else -1
        is_string = any(mark in (argument["more"] or "") for mark in ('string="true"', 'type="string"'))
        kind = Verbatim if is_string else Untyped
        if end >= 0 and not 0 <= following < end:
            value = scanner.text[begin:end]
            if written.open_ended and value.startswith("\n"):
                value = value[1:].removesuffix("\n")
            args[key], at = kind(value), scanner.past_space(end + len(close))
        elif end >= 0 or written.open_ended:  # its end tag is missing
            stop = scanner.first((written.following.format(tag), *([last] if last else [])), begin)
            args[key], at = kind(scanner.text[begin:stop].strip()), stop
        else:
            return None
    return args, at


def _tagged(scanner: Scanner, at: int) -> Found | None:
    """The call that the element at `at` is; its arguments may be an object."""
    call = scanner.match(_TAGGED, at)
    if call is None:
        return None
    end, begin = f"</{call['tag']}>", scanner.past_space(call.end())
    if scanner.text.startswith("{", begin):
        found = read_object(scanner, begin)
        at = scanner.past_space(found[1]) if found else 0
    else:
        found = _elements(scanner, begin, _PARAMETER, call["name"], end)
        at = found[1] if found else 0
    if found is None:
        return None
    if scanner.text.startswith(end, at):
        return Found([WrittenCall(call["name"], found[0])], at + len(end))
    return Found([WrittenCall(call["name"], found[0])], found[1]) if found[0] or at == len(scanner.text) else None


def _paired(scanner: Scanner, at: int) -> Found | None:
    """The call that a name with pairs after it is; a tool's name alone in its marks is one without arguments."""
    call = scanner.match(_PAIRED, at)
    found = _elements(scanner, call.end(), _PAIR, call["name"]) if call else None
    if call is None or found is None:
        return None
    args, at = found
    if (
        not args
        and not (at == len(scanner.text) and scanner.tools.find(call["name"]))
        and not scanner.match(_CLOSE, at)
    ):
        return None
    return Found([WrittenCall(call["name"], args)], at)


def _kimi(scanner: Scanner, at: int) -> Found | None:
    """The call that `<|open|>call tool="NAME"<|sep|>` begins."""
    call = scanner.match(_KIMI, at)
    found = _elements(scanner, call.end(), _KIMI_ARGUMENT, call["name"]) if call else None
    if call is None or found is None:
        return None
    last = scanner.match(_KIMI_END, found[1])
    return Found([WrittenCall(call["name"], found[0])], last.end() if last else found[1])


_TOKEN: Final = "]<]minimax[>["  # noqa: S105 (a special token of the model: it comes before each tag)
_NESTED: Final = re.compile(re.escape(_TOKEN) + r"<invoke name=\"(?P<name>[^\"<>\n]{1,128})\">")
_NESTED_TAG: Final = re.compile(re.escape(_TOKEN) + r"<(?P<end>/?)(?P<name>[^<>\s/]{1,128})>")


def _nested(scanner: Scanner, at: int) -> Found | None:
    """MiniMax's `<invoke name="NAME"><city>Rome</city></invoke>`."""
    call = scanner.match(_NESTED, at)
    found = _inside(scanner, call.end(), "invoke", 0) if call else None
    if call is None or found is None:
        return None
    return Found([WrittenCall(call["name"], found[0] if isinstance(found[0], dict) else {})], found[1])


def _inside(scanner: Scanner, at: int, name: str, depth: int) -> tuple[Any, int] | None:
    """What the element `name` holds, and where it ends: its text, or its elements by name, several of one as a list."""
    held: dict[str, list[Any]] = {}
    while depth < MAX_DEPTH:
        begin = scanner.find(_TOKEN, at)
        tag = scanner.match(_NESTED_TAG, begin) if begin >= 0 else None
        if tag is None:
            return None
        if tag["end"]:
            children = {key: items if len(items) > 1 or key == "item" else items[0] for key, items in held.items()}
            value = children if children or name == "invoke" else Untyped(scanner.text[at:begin])
            return (value, tag.end()) if tag["name"] == name else None
        found = _inside(scanner, tag.end(), tag["name"], depth + 1)
        if found is None:
            return None
        held.setdefault(tag["name"], []).append(found[0])
        at = found[1]
    return None


# The table, in the order in which the forms are tried

Form = Callable[[Scanner, int], Found | None]


class Family(NamedTuple):
    """A form, and where it begins without a mark: anywhere (`opens`), or only at a line's beginning (`line`)."""

    read: Form
    opens: str = ""
    line: str = ""


FAMILIES: Final = (
    Family(_nested, opens=r"\]<\]minimax\[>\[<invoke "),
    Family(_tagged, opens=r"<(?:[\w-]{1,20}:|｜DSML｜)?(?:function|invoke)(?: ?=|\s{0,3}name\s?=)"),
    Family(_kimi, opens=r"<\|open\|>\s?call tool="),
    Family(
        _json_after(rf"(?:(?:analysis|commentary)\s?)?to=functions\.{_NAMED}\s{{0,9}}{_SEPARATOR}{{0,4}}"),
        opens=r"(?:(?:analysis|commentary)\s?)?\bto=functions\.",
    ),
    Family(_angled, opens="<call:"),
    Family(_objects),
    Family(_json_after(rf"(?:functions\.)?{_NAMED}\s{{0,9}}{_SEPARATOR}{{1,4}}")),
    Family(_prefixed, line=rf"{CALLED}:\s?(?={NAME}\s?[({{])"),
    Family(_printed),
    Family(functions),
    Family(
        _json_after(rf"(?:>>>)?{_NAMED}\n\s?"),  # Functionary's prompt ends with the first `>>>`
        opens=rf">>>(?={NAME}\n\s?\{{)|\A(?={NAME}\n\{{)",
    ),
    Family(_paired),
    Family(
        _json_after(rf"{ACTION}{_NAMED}[ \t]{{0,9}}\nAction Input ?: ?"),
        line=rf"{ACTION}(?={NAME}[ \t]{{0,9}}\nAction Input ?:)",
    ),
)
UNMARKED: Final = tuple(family.read for family in FAMILIES if family.opens)
AT_LINES: Final = tuple(family.read for family in FAMILIES if family.line)
IN_MARKS: Final = tuple(family.read for family in FAMILIES[:-1])
OPENERS: Final = "|".join(family.opens for family in FAMILIES if family.opens)
LINES: Final = f"^(?:{'|'.join(family.line for family in FAMILIES if family.line)})"


# Calls one after the other

TRAILING: Final = re.compile(rf"(?:\s{{0,99}}(?:{CLOSES}))+")
"""Marks after a call."""
_MARK: Final = re.compile(rf"(?P<open>{OPENS})|(?P<close>{CLOSES})")
_WORD: Final = re.compile(NAME)
_NAME_WITHIN_CHARS: Final = 200
_BETWEEN: Final = re.compile(r"\s*[;,]?\s*")


def read_block(
    scanner: Scanner, at: int, forms: Sequence[Form], more: Sequence[Form] = (*UNMARKED, bare_objects)
) -> Found:
    """The calls that begin at `at`, and where they end; without any, where the marks there end.

    Without a mark, the first is in one of `forms`, those after it in one of `more`.
    """
    calls: list[WrittenCall] = []
    end, within, first = at, False, -1
    while True:
        at, opened = _past_marks(scanner, end, between=bool(calls))
        first = at if first < 0 else first
        within = within if opened is None else opened
        possible = more if calls else forms
        tried = (form(scanner, at) for form in (IN_MARKS if within else possible))
        found = next(filter(None, tried), None)
        if found is None or all(call.args is None for call in found.calls):
            found = _unreadable(scanner, at) if within else None
        if found is None:
            break
        _add_wordings(scanner, found.calls, at, found.end)
        calls += found.calls
        end = found.end
    if all(call.args is None for call in calls):
        return Found([], first)
    trailing = scanner.match(TRAILING, end)
    return Found(calls, trailing.end() if trailing else end)


def _unreadable(scanner: Scanner, at: int) -> Found | None:
    """The call between two marks that names a tool and can't be read: those after it still can."""
    mark = _MARK.search(scanner.text, at)
    end = mark.start() if mark else at
    scanner.spend(end - at)
    name = next(filter(scanner.tools.find, _WORD.findall(scanner.text, at, min(end, at + _NAME_WITHIN_CHARS))), "")
    return Found([WrittenCall(name, None)], end) if name else None


def _add_wordings(scanner: Scanner, calls: Sequence[WrittenCall], start: int, end: int) -> None:
    """Give each of the calls its wording: from its name to the last bracket before the next one's."""
    names = [scanner.tools.find(call.name) or call.name for call in calls]
    for call, name, following in zip(calls, names, [*names[1:], None], strict=True):
        start = max(scanner.text.find(name, start, end), start)
        after = -1 if following is None else scanner.text.find(following, start + 1, end)
        piece = scanner.text[start : end if after < 0 else after]
        call.wording = piece if after < 0 else piece[: max(map(piece.rfind, ")]}")) + 1]
        start = end if after < 0 else after


def _past_marks(scanner: Scanner, at: int, *, between: bool) -> tuple[int, bool | None]:
    """The place after the marks at `at`, and whether a call may begin after the last; None: no marks here."""
    opened = None
    while True:
        space = scanner.match(_BETWEEN, at) if between else None
        at = space.end() if space else scanner.past_space(at)
        mark = scanner.match(_MARK, at)
        if mark is None:
            return at, opened
        at, opened = mark.end(), mark["open"] is not None
