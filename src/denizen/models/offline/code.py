"""Answers about code: where a text is, where a name is defined, who calls whom, and which functions stand out.

The code tools `view` and `analyze` know it best. Without them, and for what they don't index, patterns decide.
"""

import re
from collections.abc import Generator, Sequence
from typing import Final, Literal

from denizen.messages import ToolResult
from denizen.models.offline.plan import Hit, Plan, Trouble, Want, block, hits_in, run
from denizen.models.offline.question import Question
from denizen.plural import counted

SHOWN = 10
"""Functions that are listed unless a number is asked for."""
MOST = 50
"""Lines, functions or callers that are listed at most."""
UNDEFINED: Final = "I find "
"""How the answer begins if nothing defines a name."""
_LONGEST_BODY = 300
"""Lines of a function whose calls are looked for."""

_SYMBOLS: Final = r'if type == "array" then .[] else . end | select(.signature) | "\(.file):\(.line): \(.signature)"'
_CALLERS: Final = r'.[] | "\(.caller): line \(.lines | map(tostring) | join(", "))"'
_CALLEES: Final = (
    r'.[] | "\(.name): line \(.lines | map(tostring) | join(", "))\(.defined[:1] | map(", in " + .) | join(""))"'
)
_FUNCTIONS: Final = r'.[:%d][] | "\(.file):\(.line): \(.name), %s"'
_LENGTH: Final = r'\(.lines) line\(if .lines == 1 then "" else "s" end)'
_COMPLEXITY: Final = rf"complexity \(.complexity), {_LENGTH}"

_META: Final = re.compile(r"[.^$*+?{}\[\]\\|()]")
_MODIFIERS: Final = (
    r"(?:^|[{;])\s*(?:(?:export|default|declare|abstract|public|private|protected|internal|static|final|sealed|open|data|inline"
    r"|async|pub(?:\([^)]*\))?|unsafe|extern|virtual|override|readonly|partial|suspend|local|typedef|CREATE|OR|REPLACE"
    r"|create|or|replace)\s+)*"
)
_KEYWORDS: Final = (
    rf"{_MODIFIERS}(?:def|class|function|func|fun|fn|struct|enum|union|trait|interface|protocol|type|typedef|extension"
    r"|record|module|namespace|package|object|macro_rules!|macro|defmodule|defp|defmacro|sub|proc|mod|newtype"
    r"|TABLE|VIEW|PROCEDURE|FUNCTION|TRIGGER|table|view|procedure|trigger)"
)
_VALUES: Final = rf"{_MODIFIERS}(?:const|let|var|val|local|data|alias)(?:\s+mut)?"
_COMMENT: Final = re.compile(r"(?:^|\s)(?:#|//|--|;;|/\*|<!--).*|^\s*\*.*")
_PROSE: Final = re.compile(r"(?i)\.(?:md|rst|txt|adoc|html?)$")
_STATEMENT: Final = re.compile(
    r"\s*(?:return|await|raise|throw|yield|new|else|assert|print|if|while|for|case|in|not|and|or|del|import|from)\b"
)
_CALLED: Final = re.compile(
    r"(?!(?:if|elif|for|foreach|while|until|switch|match|catch|return|and|or|not|in|def|fn|func|function|lambda|with|sizeof)\b)"
    r"\b([A-Za-z_][\w$]*)\s*\("
)


def text(asked: Question, found: re.Match[str]) -> Plan:
    """The lines that hold a text; in any case if it isn't there as written."""
    wanted, path = asked.name(found["name"]), asked.place(found)
    pattern = _whole(wanted) if wanted.casefold() in {"todo", "fixme"} else _escaped(wanted)
    for ignore_case in (False, True):
        hits, remarks = hits_in((yield from run("grep", pattern=pattern, path=path, ignore_case=ignore_case)))
        if hits:
            how = ", with other capitals" if ignore_case else ""
            return _found(f"`{wanted}` is in {{}}{_in(path)}{how}:", hits, remarks)
    return f"`{wanted}` is nowhere{_in(path)} in the files that I can search.{_note(remarks)}"


def definition(asked: Question, found: re.Match[str]) -> Plan:
    """Where something is defined: by `view`, else by patterns."""
    name, path = asked.name(found["name"]), asked.place(found)
    try:
        rows = yield from run("view", path=name if path == "." else f"{path}/{name}", jq=_SYMBOLS)
    except Trouble:
        rows = ""
    if symbols := _rows(rows):
        return f"`{name}` is defined in {counted(len(symbols), 'place')}:\n\n{block(symbols, MOST)}"
    defining, mentions, remarks = yield from _by_patterns(name, path)
    name = _last(name)
    if defining:
        return _found(f"`{name}` is defined in {{}}:", defining, remarks)
    if mentions:
        return _found(f"{UNDEFINED}no line that defines `{name}`, but it is mentioned in {{}}:", mentions, remarks)
    return f"{UNDEFINED}`{name}` nowhere in the files that I can search.{_note(remarks)}"


def callers(asked: Question, found: re.Match[str]) -> Plan:
    """Who calls a function; the lines that have the name if nobody does."""
    wanted, path = asked.name(found["name"]), asked.place(found)
    name = _last(wanted)
    try:
        rows = _rows((yield from run("analyze", what="callers", path=path, name=wanted, jq=_CALLERS)))
    except Trouble:
        call = rf"{_whole(name)}\s*\("
        hits, remarks = hits_in((yield from run("grep", pattern=call, path=path)))
        if calling := [hit for hit in hits if not _PROSE.search(hit.path) and _is_call(hit.line, call, name)]:
            return _found(f"`{wanted}` is called in {{}}{_in(path)}:", calling, remarks)
        rows = list[str]()
    if not rows:
        return (yield from text(asked, found))
    return f"`{wanted}` is called in {counted(len(rows), 'place')}{_in(path)}, by its name:\n\n{block(rows, MOST)}"


def callees(asked: Question, found: re.Match[str]) -> Plan:
    """What a function calls; without `analyze`, by the brackets in the lines below its definition."""
    name, path = asked.name(found["name"]), asked.place(found)
    try:
        rows = _rows((yield from run("analyze", what="callees", path=path, name=name, jq=_CALLEES)))
        where = ""
    except Trouble:
        [place, *_], _, _ = yield from _by_patterns(name, path, least=1)
        body = yield from _body(place)
        lines: dict[str, list[str]] = {}
        for number, line in enumerate(body, place.number + 1):
            for called in _CALLED.findall(_COMMENT.sub("", line)):
                lines.setdefault(called, []).append(str(number))
        rows = [f"{called}: line {', '.join(dict.fromkeys(numbers))}" for called, numbers in lines.items()]
        where = f" ({place.path}:{place.number})"
    if not rows:
        return f"`{name}`{where} calls nothing that I can see."
    return f"`{name}`{where} calls {counted(len(rows), 'function')}, by their names:\n\n{block(rows, MOST)}"


def longest(asked: Question, found: re.Match[str]) -> Plan:
    """The longest functions."""
    return (yield from _ranked(asked, found, "length"))


def most_complex(asked: Question, found: re.Match[str]) -> Plan:
    """The most complex functions."""
    return (yield from _ranked(asked, found, "complexity"))


def _ranked(asked: Question, found: re.Match[str], what: Literal["length", "complexity"]) -> Plan:
    path, number = asked.place(found), asked.count(found, usual=SHOWN, most=MOST)
    wanted = _FUNCTIONS % (number, _LENGTH if what == "length" else _COMPLEXITY)
    rows = _rows((yield from run("analyze", what=what, path=path, jq=wanted)))
    if not rows:
        return f"I find no functions{_in(path)}."
    which = "longest" if what == "length" else "most complex"
    number = f"{len(rows)} functions" if len(rows) > 1 else "function"
    return f"The {which} {number}{_in(path)}:\n\n{block(rows)}"


def _by_patterns(
    name: str, path: str, *, least: int = 0
) -> Generator[Sequence[Want], Sequence[ToolResult], tuple[Sequence[Hit], Sequence[Hit], str]]:
    """The lines that define a name, those that mention it, and grep's remarks.

    One search for the word is enough, unless more lines have it than are shown. Raises Trouble for less than `least`.
    """
    name = _last(name)
    mentions, remarks = hits_in((yield from run("grep", pattern=_whole(name), path=path)))
    for kind in _definitions(_escaped(name)):
        hits = mentions
        if mentions and remarks:  # cut
            hits, _ = hits_in((yield from run("grep", pattern=kind, path=path)))
        found = [each for each in hits if re.search(kind, each.line) and not _STATEMENT.match(each.line)]
        if found := [each for each in found if not _PROSE.search(each.path)]:
            return found, mentions, remarks if hits is mentions else ""
    if least:
        raise Trouble(f"{UNDEFINED}no line that defines `{name}`.")
    return [], mentions, remarks


def _body(place: Hit) -> Generator[Sequence[Want], Sequence[ToolResult], Sequence[str]]:
    """The lines below a definition that are indented further, up to a line that isn't and closes nothing."""
    rows = yield from run("read", path=place.path, start=place.number + 1, end=place.number + _LONGEST_BODY)
    lines = [line.partition("\t")[2] for line in rows.split("\n") if re.match(r"\d+\t", line)]
    indent = len(place.line) - len(place.line.lstrip())
    after = (at for at, line in enumerate(lines) if line.strip() and len(line) - len(line.lstrip()) <= indent)
    end = next((at for at in after if not re.match(r"\s*[)\]{:]", lines[at])), len(lines))
    return lines[:end]


def _is_call(line: str, call: str, name: str) -> bool:
    """Whether the line calls the name outside comments, and doesn't define it."""
    code = _COMMENT.sub("", line)
    keyword, *_, typed, method, _ = _definitions(_escaped(name))
    defines = re.search(keyword, code) or re.search(method, code)
    defines = defines or (code.rstrip().endswith("{") and re.search(typed, code) and not _STATEMENT.match(code))
    return bool(re.search(call, code)) and not defines


def _definitions(symbol: str) -> Sequence[str]:
    """Regular expressions for the lines that may define a symbol, the surest first."""
    return (
        rf"{_KEYWORDS}\s+(?:\([^)]*\)\s*)?(?:[\w$]+(?:\.|::))*{symbol}(?:[^\w$]|$)",
        rf"{_VALUES}\s+{symbol}\s*(?:[=:;,(<\[{{]|$)",
        rf"^\s*#\s*define\s+{symbol}\b",
        rf"^\s*(?:(?:export|public|private|protected|static|final|readonly)\s+)*{symbol}\s*(?::[^=]*)?=(?:[^=]|$)",
        rf"^\s*[\w$<>:,*&\[\]][\w$<>:,*&\[\]\s]*[\s*&](?:\w+::)*{symbol}\s*\([^;]*$",
        rf"^\s*(?:(?:async|static|get|set|override)\s+)*{symbol}\s*\([^;]*\)[^;()=]*\{{",
        rf"^{symbol}\s*:(?:[^=]|$)",
    )


def _last(name: str) -> str:
    """`add` of `Store.add`."""
    return re.split(r"\.|::|#", name)[-1] or name


def _whole(name: str) -> str:
    """A regular expression for a name that is not part of a longer one."""
    before, after = (r"\b" if re.match(r"\w", sign) else "" for sign in (name[:1], name[-1:]))
    return f"{before}{_escaped(name)}{after}"


def _escaped(text: str) -> str:
    """A regular expression for the text itself, in every dialect."""
    return _META.sub(r"\\\g<0>", text)


def _rows(text: str) -> list[str]:
    """The lines of a result without its remarks."""
    return [row for row in text.split("\n") if row and not row.startswith("[")]


def _in(path: str) -> str:
    return "" if path == "." else f" in `{path}`"


def _found(heading: str, hits: Sequence[Hit], remarks: str) -> str:
    """The heading with the number of lines in it, and the lines."""
    files = len({hit.path for hit in hits})
    number = counted(len(hits), "place") + (f" in {counted(files, 'file')}" if files > 1 else "")
    return f"{heading.format(number)}\n\n{block([*map(str, hits)], MOST)}{_note(remarks)}"


def _note(remarks: str) -> str:
    remarks = remarks.removeprefix("[no matches]").strip()
    return f"\n\n{remarks}" if remarks else ""
