"""Answers about code: where a text is, where a name is defined, who calls whom, and which functions stand out.

The code tools `view` and `analyze` know it best. Without them, and for what they don't index, patterns decide.
"""

import re
from collections.abc import Generator, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from denizen.messages import ToolResult
from denizen.models.offline.plan import Plan, Trouble, Want, block, file_text, read_files, rows_in, run
from denizen.models.offline.question import Question
from denizen.text.plural import counted

SHOWN = 10
"""Functions that are listed unless a number is asked for."""
MOST = 50
"""Lines, functions or callers that are listed at most."""
UNDEFINED: Final = "I find "
"""How the answer begins if nothing defines a name."""
OWNERS = 5
"""Classes of a name whose methods are looked for."""

_MATCHES: Final = r'(if .whole then empty else "[there is more;]" end), (.matches[] | "\(.file):\(.line): \(.text)")'
_SYMBOLS: Final = r'if type == "array" then .[] else . end | select(.signature) | "\(.file):\(.line): \(.signature)"'
_PROSE: Final = "!*.{md,rst,txt,adoc,htm,html}"
_META: Final = re.compile(r"[.^$*+?{}\[\]\\|()]")
_MODIFIERS: Final = (
    r"(?:^|[{;])\s*(?:(?:export|default|declare|abstract|public|private|protected|internal|static|final|sealed|open|data"
    r"|inline|async|pub(?:\([^)]*\))?|unsafe|extern|virtual|override|readonly|partial|suspend|local|create|or|replace)\s+)*"
)
_KEYWORD: Final = (
    rf"(?i:{_MODIFIERS}(?:def|class|function\*?|func|fun|fn|struct|enum|union|trait|interface|protocol|type|typedef"
    r"|extension|record|module|namespace|package|object|macro_rules!|defmodule|defp|defmacro|sub|proc|mod|newtype|table"
    r"|view|procedure|trigger|#\s*define)\s+)(?:\([^)]*\)\s*)?(?:[\w$]+(?:\.|::))*"
)
_TYPED: Final = r"^\s*[\w$<>:,*&\[\]][\w$<>:,*&\[\]\s]*[\s*&](?:\w+::)*"
"""The beginning of a function's definition in languages that begin with its type."""
_TYPED_FILES: Final = re.compile(r"\.(?:[ch]|cc|cpp|cxx|hpp|hh|cs|cu|d|dart|groovy|java|m|mm)$")
_COMMENT: Final = re.compile(r"(?:^|\s)(?:#|//|--|;;|/\*|<!--).*|^\s*\*.*")
_STATEMENT: Final = re.compile(
    r"\s*(?:return|await|raise|throw|yield|new|else|assert|print|if|while|for|case|in|not|and|or|del|import|from|switch"
    r"|catch|until|elif|foreach|match)\b"
)


class Hit(NamedTuple):
    """A line that `grep` found."""

    path: str
    number: int
    line: str

    def __str__(self) -> str:
        return f"{self.path}:{self.number}: {self.line.strip()}"


class Hits(NamedTuple):
    """Lines that `grep` found; `complete` is False if there are more."""

    lines: Sequence[Hit]
    complete: bool = True

    def below(self, heading: str) -> str:
        """The heading with the number of lines in it, and the lines."""
        files = len({hit.path for hit in self.lines})
        number = counted(len(self.lines), "place") + (f" in {counted(files, 'file')}" if files > 1 else "")
        number = number if self.complete else f"at least {number}"
        return f"{heading.format(number)}\n\n{block([*map(str, self.lines)], MOST)}"


Search = Generator[Sequence[Want], Sequence[ToolResult], Hits]


def text(asked: Question, found: re.Match[str]) -> Plan:
    """The lines that hold a text; in any case if it isn't there as written."""
    wanted, path = asked.name(found["name"]), asked.place(found)
    pattern = _whole(wanted) if wanted.casefold() in {"todo", "fixme"} else _escaped(wanted)
    for ignore_case in (False, True):
        hits = yield from _grep(pattern, path, ignore_case=ignore_case)
        if hits.lines:
            how = ", with other capitals" if ignore_case else ""
            return hits.below(f"`{wanted}` is in {{}}{_in(path)}{how}:")
    return f"`{wanted}` is nowhere{_in(path)} in the files that I can search."


def definition(asked: Question, found: re.Match[str]) -> Plan:
    """Where something is defined: by `view`, else by patterns."""
    name, path = asked.name(found["name"]), asked.place(found)
    try:
        rows = yield from run("view", path=name if path == "." else f"{path}/{name}", jq=_SYMBOLS)
    except Trouble:
        rows = ""
    if symbols := rows_in(rows).lines:
        return f"`{name}` is defined in {counted(len(symbols), 'place')}:\n\n{block(symbols, MOST)}"
    defining = yield from _defining(name, path)
    if defining.lines:
        return defining.below(f"`{name}` is defined in {{}}:")
    mentions = yield from _grep(_whole(_last(name)), path)
    if mentions.lines:
        which = "it" if _last(name) == name else f"`{_last(name)}`"
        return mentions.below(f"{UNDEFINED}no line that defines `{name}`, but {which} is mentioned in {{}}:")
    return f"{UNDEFINED}`{_last(name)}` nowhere in the files that I can search."


def callers(asked: Question, found: re.Match[str]) -> Plan:
    """Who calls a function; the lines that have the name if nobody does."""
    wanted, path = asked.name(found["name"]), asked.place(found)
    try:
        called = yield from run("analyze", what="callers", path=path, name=wanted, most=MOST)
        if rows_in(called).lines:
            return f"Calls of `{wanted}`{_in(path)}:\n\n{block(called.splitlines())}"
    except Trouble:
        name = _last(wanted)
        call = rf"{_whole(name)}\s*\("
        hits = yield from _grep(call, path, glob=_PROSE)
        calls = [hit for hit in hits.lines if re.search(call, _COMMENT.sub("", hit.line)) and not _defines(hit, name)]
        if calls:
            return Hits(calls, hits.complete).below(f"`{wanted}` is called in {{}}{_in(path)}:")
    return (yield from text(asked, found))


def callees(asked: Question, found: re.Match[str]) -> Plan:
    """What a function calls."""
    name, path = asked.name(found["name"]), asked.place(found)
    called = yield from run("analyze", what="callees", path=path, name=name, most=MOST)
    return f"Calls in `{name}`{_in(path)}:\n\n{block(called.splitlines())}"


def longest(asked: Question, found: re.Match[str]) -> Plan:
    """The longest functions."""
    return (yield from _ranked(asked, found, "length", "longest"))


def most_complex(asked: Question, found: re.Match[str]) -> Plan:
    """The most complex functions."""
    return (yield from _ranked(asked, found, "complexity", "most complex"))


def _ranked(asked: Question, found: re.Match[str], what: str, which: str) -> Plan:
    path, number = asked.place(found), asked.count(found, usual=SHOWN, most=MOST)
    rows = yield from run("analyze", what=what, path=path, most=number)
    return f"The {which} functions{_in(path)}:\n\n{block(rows.splitlines())}"


def _grep(pattern: str, path: str, **options: object) -> Search:
    rows = rows_in((yield from run("grep", pattern=pattern, path=path, jq=_MATCHES, **options)))
    found = (re.fullmatch(r"(.*?):(\d+): (.*)", row) for row in rows.lines)
    return Hits([Hit(match[1], int(match[2]), match[3]) for match in found if match], rows.complete)


def _defining(name: str, path: str) -> Search:
    """The lines that define a name; of `Store.add` those in the class `Store`, or that name it."""
    last = _last(name)
    hits = yield from _grep("|".join(_definitions(last)), path, glob=_PROSE)
    defining = [hit for hit in hits.lines if _defines(hit, last)]
    if last == name:
        return Hits(defining, hits.complete)
    owner = _last(name.removesuffix(last).rstrip(".:#"))
    named = re.compile(rf"{_whole(owner)}\)?(?:\.prototype)?[\s.:]+{_escaped(last)}")
    inside: set[tuple[str, int]] = set()
    implementing = rf"\bimpl\b.*{_whole(owner)}"
    owners = yield from _grep("|".join((*_definitions(owner), implementing)), path, glob=_PROSE)
    for place in [each for each in owners.lines if each.path in {hit.path for hit in defining}][:OWNERS]:
        inside |= {hit[:2] for hit in [place, *(yield from _body(place))]}
    return Hits([hit for hit in defining if hit[:2] in inside or named.search(hit.line)], hits.complete)


def _body(place: Hit) -> Generator[Sequence[Want], Sequence[ToolResult], Sequence[Hit]]:
    """The lines below a definition that are indented further, up to a line that isn't and closes nothing."""
    [result] = yield from read_files([place.path])
    lines = enumerate(file_text(result.text).lines[place.number :], place.number + 1)
    indent = re.compile(rf"\s{{{len(place.line) - len(place.line.lstrip()) + 1}}}|\s*$|\s*[)\]{{:]")
    return [Hit(place.path, *line) for line in takewhile(lambda line: indent.match(line[1]), lines)]


def _defines(hit: Hit, name: str) -> bool:
    """Whether the line defines the name, going by its file's language where that matters."""
    *sure, method, typed = _definitions(name)
    code = _COMMENT.sub("", hit.line)
    if any(re.search(pattern, hit.line) for pattern in sure):
        return True
    if _STATEMENT.match(code):
        return False
    return bool(re.search(method, code) or (_TYPED_FILES.search(hit.path) and re.search(typed, code)))


def _definitions(name: str) -> Sequence[str]:
    """Regular expressions for the lines that may define a name, the surest first."""
    symbol = _escaped(name)
    function = r"(?:async\s+)?(?:function\b|(?:\([^)]*\)|\w+)\s*=>)"
    return (
        rf"{_KEYWORD}{symbol}(?:[^\w$]|$)",
        rf"{_MODIFIERS}(?:const|let|var|val|local|data|alias)(?:\s+mut)?\s+{symbol}\s*(?:[=:;,(<\[{{{{]|$)",
        rf"^\s*(?:[\w$]+\.)+{symbol}\s*=\s*{function}",
        rf"^\s*{symbol}\s*:\s*{function}",
        rf"^\s*(?:(?:export|public|private|protected|static|final|readonly)\s+)*{symbol}\s*(?::[^=]*)?=(?:$|[^=].*[^,\s]\s*$|[^=,]$)",
        rf"^{symbol}\s*:(?:[^=]|$)",
        rf"(?:^|[{{;])\s*(?:(?:async|static|get|set|override)\s+)*{symbol}\s*\([^;()\"']*\)[^;()=]*\{{",
        rf"{_TYPED}{symbol}\s*\((?:[^;]*$|[^;()]*\)[^;()=]*\{{)",
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


def _in(path: str) -> str:
    return "" if path == "." else f" in `{path}`"
