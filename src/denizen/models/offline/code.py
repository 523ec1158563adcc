"""Answers about code: where a text is, where a name is defined, who calls whom, and which functions stand out.

The code tools `view` and `analyze` know it best. Without them, and for what they don't index, patterns decide.
"""

import re
from collections.abc import Generator, Sequence
from typing import Final, NamedTuple

from denizen.messages import ToolResult
from denizen.models.offline.plan import Plan, Trouble, Want, block, rows_in, run
from denizen.models.offline.question import Question
from denizen.models.offline.rules import rules
from denizen.text.plural import counted

DEFAULT_FUNCTIONS: Final = 10
MAX_ROWS: Final = 50
"""Lines, functions or callers that are listed at most."""
UNDEFINED: Final = "I find "
"""The beginning of the answer if nothing defines a name."""

_MATCHES: Final = r'(if .whole then empty else "[there is more;]" end), (.matches[] | "\(.file):\(.line): \(.text)")'
_SYMBOLS: Final = r'if type == "array" then .[] else . end | select(.signature) | "\(.file):\(.line): \(.signature)"'
_PROSE: Final = "!*.{md,rst,txt,adoc,htm,html}"
_SURE: Final = ("keyword", "variable", "property", "value", "target")
"""Ways to define a name that no statement looks like."""
_META: Final = re.compile(r"[.^$*+?{}\[\]\\|()]")


class Hit(NamedTuple):
    """A line that `grep` found."""

    path: str
    number: int
    line: str


class Hits(NamedTuple):
    """Lines that `grep` found; `complete` is False if there are more."""

    lines: Sequence[Hit]
    complete: bool = True

    def below(self, heading: str) -> str:
        """The heading with the number of lines in it, and the lines."""
        files = len({hit.path for hit in self.lines})
        number = counted(len(self.lines), "place") + (f" in {counted(files, 'file')}" if files > 1 else "")
        number = number if self.complete else f"at least {number}"
        rows = [f"{hit.path}:{hit.number}: {hit.line.strip()}" for hit in self.lines]
        return f"{heading.format(number)}\n\n{block(rows, MAX_ROWS)}"


Search = Generator[Sequence[Want], Sequence[ToolResult], Hits]


def text(asked: Question, found: re.Match[str]) -> Plan:
    """The lines that hold a text; in any case if it isn't there as written."""
    wanted, path = asked.name(found["name"]), asked.place(found)
    pattern = _whole(wanted) if wanted.casefold() in {"todo", "fixme"} else _escaped(wanted)
    for ignore_case in (False, True):
        hits = yield from _grep(pattern, path, ignore_case=ignore_case)
        if hits.lines:
            how = ", with other capitals" if ignore_case else ""
            return hits.below(f"`{wanted}` is in {{}}{within(path)}{how}:")
    nowhere = f"`{wanted}` is nowhere{within(path)} in the files that I can search."
    last = _last(wanted)
    if last != wanted and (hits := (yield from _grep(_whole(last), path))).lines:
        return hits.below(f"{nowhere} `{last}` is in {{}}; whose it is I can't tell:")
    return nowhere


def definition(asked: Question, found: re.Match[str]) -> Plan:
    """The definition of a name: by `view`, otherwise by patterns, which can't tell whose a method is."""
    name, path = asked.name(found["name"]), asked.place(found)
    last = _last(name)
    try:
        rows = yield from run("view", path=name if path == "." else f"{path}/{name}", jq=_SYMBOLS)
    except Trouble:
        rows = ""
    if symbols := rows_in(rows).lines:
        return f"`{name}` is defined in {counted(len(symbols), 'place')}:\n\n{block(symbols, MAX_ROWS)}"
    hits = yield from _grep(
        "|".join(_definition(kind, last) for kind in (*_SURE, "method", "typed")), path, glob=_PROSE
    )
    defining, unsure = [hit for hit in hits.lines if _defines(hit, last)], ""
    if defining and (owner := name.removesuffix(last).rstrip(".:#")):
        owned = {hit.path for hit in (yield from _grep(_whole(_last(owner)), path)).lines}
        defining = [hit for hit in defining if hit.path in owned]
        unsure = f" in files that name `{owner}`; whose it is I can't tell"
    if defining:
        return Hits(defining, hits.complete).below(f"`{last}` is defined in {{}}{unsure}:")
    mentions = yield from _grep(_whole(last), path)
    if mentions.lines:
        which = "it" if last == name else f"`{last}`"
        return mentions.below(f"{UNDEFINED}no line that defines `{name}`, but {which} is mentioned in {{}}:")
    return f"{UNDEFINED}`{last}` nowhere in the files that I can search."


def callers(asked: Question, found: re.Match[str]) -> Plan:
    """The callers of a function; without any, the lines with its name."""
    wanted, path = asked.name(found["name"]), asked.place(found)
    try:
        called = yield from run("analyze", what="callers", path=path, name=wanted, most=MAX_ROWS)
        if rows_in(called).lines:
            return f"Calls of `{wanted}`{within(path)}:\n\n{block(called.splitlines())}"
    except Trouble:
        name = _last(wanted)
        call = rf"{_whole(name)}\s*\("
        hits = yield from _grep(call, path, glob=_PROSE)
        calls = [hit for hit in hits.lines if re.search(call, _without_comment(hit.line)) and not _defines(hit, name)]
        if calls:
            return Hits(calls, hits.complete).below(f"`{name}` is called in {{}}{within(path)}:")
    return (yield from text(asked, found))


def callees(asked: Question, found: re.Match[str]) -> Plan:
    """What a function calls."""
    name, path = asked.name(found["name"]), asked.place(found)
    called = yield from run("analyze", what="callees", path=path, name=name, most=MAX_ROWS)
    return f"Calls in `{name}`{within(path)}:\n\n{block(called.splitlines())}"


def ranked(asked: Question, found: re.Match[str]) -> Plan:
    """The longest functions, or the most complex ones."""
    path, number = asked.place(found), asked.count(found, DEFAULT_FUNCTIONS, MAX_ROWS)
    what, which = ("complexity", "most complex") if re.search("(?i)compl", found[0]) else ("length", "longest")
    rows = yield from run("analyze", what=what, path=path, most=number)
    return f"The {which} functions{within(path)}:\n\n{block(rows.splitlines())}"


def within(path: str) -> str:
    """The words for a place that was asked for."""
    return "" if path == "." else f" in `{path}`"


def _grep(pattern: str, path: str, **options: object) -> Search:
    rows = rows_in((yield from run("grep", pattern=pattern, path=path, jq=_MATCHES, **options)))
    found = (re.fullmatch(r"(.*?):(\d+): (.*)", row) for row in rows.lines)
    return Hits([Hit(match[1], int(match[2]), match[3]) for match in found if match], rows.complete)


def _defines(hit: Hit, name: str) -> bool:
    """Whether the line defines the name, going by its file's language where that matters."""
    if any(re.search(_definition(kind, name), hit.line) for kind in _SURE):
        return True
    code = _without_comment(hit.line)
    if re.match(rules().definitions["statement"], code):
        return False
    has_types = re.search(rules().definitions["typed_files"], hit.path)
    return any(re.search(_definition(kind, name), code) for kind in ("method", *(["typed"] if has_types else [])))


def _definition(kind: str, name: str) -> str:
    """A regular expression for the lines that define the name in one way."""
    return rules().definitions[kind].replace("SYMBOL", _escaped(name))


def _without_comment(line: str) -> str:
    return re.sub(rules().definitions["comment"], "", line)


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
