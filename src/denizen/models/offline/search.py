"""Answers about what is in the files: where a text is, where a symbol is defined."""

import re
from collections.abc import Sequence
from typing import Final

from denizen.models.offline.outputs import Hit, hits_in
from denizen.models.offline.plan import Plan, Trouble, run
from denizen.models.offline.question import Question
from denizen.plural import counted

LINES = 50
"""How many lines are shown."""
UNDEFINED: Final = "I find "
"""How the answer begins where nothing defines a name."""

_SYMBOLS: Final = r'if type == "array" then .[] else . end | select(.signature) | "\(.file):\(.line): \(.signature)"'
"""What is wanted of the symbols that `view` finds."""
_META: Final = re.compile(r"[.^$*+?{}\[\]\\|()]")
_MODIFIERS: Final = (
    r"(?:^|[{;])\s*(?:(?:export|default|declare|abstract|public|private|protected|internal|static|final|sealed|open|data|inline"
    r"|async|pub(?:\([^)]*\))?|unsafe|extern|virtual|override|readonly|partial|suspend|local|typedef|CREATE|OR|REPLACE"
    r"|create|or|replace)\s+)*"
)
_DEFINING: Final = (
    rf"{_MODIFIERS}(?:def|class|function|func|fun|fn|struct|enum|union|trait|interface|protocol|type|typedef|extension"
    r"|record|module|namespace|package|object|macro_rules!|macro|defmodule|defp|defmacro|sub|proc|mod|newtype"
    r"|TABLE|VIEW|PROCEDURE|FUNCTION|TRIGGER|table|view|procedure|trigger)"
)
_HOLDING: Final = rf"{_MODIFIERS}(?:const|let|var|val|local|data|alias)(?:\s+mut)?"
"""Words before the names of values; in prose they stand before others, too."""
_COMMENT: Final = re.compile(r"(?:^|\s)(?:#|//|--|;;|/\*|<!--).*|^\s*\*.*")
_PROSE: Final = re.compile(r"(?i)\.(?:md|rst|txt|adoc|html?)$")
_USING: Final = re.compile(
    r"\s*(?:return|await|raise|throw|yield|new|else|assert|print|if|while|for|case|in|not|and|or|del|import|from)\b"
)


def text(asked: Question, found: re.Match[str]) -> Plan:
    """The lines that hold a text; with other capitals where it isn't there as written."""
    wanted, path = asked.name(found["name"]), asked.place(found)
    pattern = _whole(wanted) if wanted.casefold() in {"todo", "fixme"} else _escaped(wanted)
    where = "" if path == "." else f" in `{path}`"
    for ignore_case in (False, True):
        args = {"pattern": pattern, "path": path} | ({"ignore_case": True} if ignore_case else {})
        hits, remarks = hits_in((yield from run("grep", **args)))
        if hits:
            how = ", with other capitals" if ignore_case else ""
            return _told(f"`{wanted}` is in {{}}{where}{how}:", hits, remarks)
    return f"`{wanted}` is nowhere{where} in the files that I can search.{_remarked(remarks)}"


def calls(asked: Question, found: re.Match[str]) -> Plan:
    """The lines that call something, as far as brackets tell; where there are none, those that have its name."""
    wanted, path = asked.name(found["name"]), asked.place(found)
    name = re.split(r"\.|::|#", wanted)[-1] or wanted
    call = rf"{_whole(name)}\s*\("
    hits, remarks = hits_in((yield from run("grep", pattern=call, path=path)))
    calling = [hit for hit in hits if not _PROSE.search(hit.path) and _calls(hit.line, call, name)]
    if not calling:
        return (yield from text(asked, found))
    where = "" if path == "." else f" in `{path}`"
    return _told(f"`{wanted}` is called in {{}}{where}:", calling, remarks)


def _calls(line: str, call: str, name: str) -> bool:
    """Whether it does so outside of comments, and doesn't define the name."""
    code = _COMMENT.sub("", line)
    keyword, *_, typed, method, _ = _definitions(_escaped(name))
    defines = re.search(keyword, code) or re.search(method, code)
    defines = defines or (code.rstrip().endswith("{") and re.search(typed, code) and not _USING.match(code))
    return bool(re.search(call, code)) and not defines


def definition(asked: Question, found: re.Match[str]) -> Plan:
    """Where something is defined: as `view` knows the code, and where it doesn't, or isn't there, as patterns tell."""
    name, path = asked.name(found["name"]), asked.place(found)
    try:
        rows = yield from run("view", path=name if path == "." else f"{path}/{name}", jq=_SYMBOLS)
    except Trouble:
        rows = ""
    if symbols := [line for line in rows.split("\n") if line and not line.startswith("[")]:
        more = f"\n… and {len(symbols) - LINES} more" if len(symbols) > LINES else ""
        lines = "\n".join(symbols[:LINES])
        return f"`{name}` is defined in {counted(len(symbols), 'place')}:\n\n```\n{lines}{more}\n```"
    return (yield from _by_patterns(name, path))


def _by_patterns(name: str, path: str) -> Plan:
    """Where something is defined, as far as patterns tell: by a keyword, an assignment, or as C and Java do it.

    One search for the word is enough, unless more lines have it than are shown.
    """
    name = re.split(r"\.|::|#", name)[-1] or name
    mentions, remarks = hits_in((yield from run("grep", pattern=_whole(name), path=path)))
    cut = bool(mentions and remarks)
    for kind in _definitions(_escaped(name)):
        hits, said = hits_in((yield from run("grep", pattern=kind, path=path))) if cut else (mentions, remarks)
        if defining := [hit for hit in hits if _defines(hit, kind)]:
            return _told(f"`{name}` is defined in {{}}:", defining, said)
    if mentions:
        return _told(f"{UNDEFINED}no line that defines `{name}`, but it is mentioned in {{}}:", mentions, remarks)
    return f"{UNDEFINED}`{name}` nowhere in the files that I can search.{_remarked(remarks)}"


def _defines(hit: Hit, kind: str) -> bool:
    return bool(re.search(kind, hit.line)) and not _USING.match(hit.line) and not _PROSE.search(hit.path)


def _whole(name: str) -> str:
    """A regular expression for a name that is no part of a longer one."""
    before, after = (r"\b" if re.match(r"\w", sign) else "" for sign in (name[:1], name[-1:]))
    return f"{before}{_escaped(name)}{after}"


def _definitions(symbol: str) -> Sequence[str]:
    """Regular expressions for the lines that may define a symbol, the surest first."""
    return (
        rf"{_DEFINING}\s+(?:\([^)]*\)\s*)?(?:[\w$]+(?:\.|::))*{symbol}(?:[^\w$]|$)",
        rf"{_HOLDING}\s+{symbol}\s*(?:[=:;,(<\[{{]|$)",
        rf"^\s*#\s*define\s+{symbol}\b",
        rf"^\s*(?:(?:export|public|private|protected|static|final|readonly)\s+)*{symbol}\s*(?::[^=]*)?=(?:[^=]|$)",
        rf"^\s*[\w$<>:,*&\[\]][\w$<>:,*&\[\]\s]*[\s*&](?:\w+::)*{symbol}\s*\([^;]*$",
        rf"^\s*(?:(?:async|static|get|set|override)\s+)*{symbol}\s*\([^;]*\)[^;()=]*\{{",
        rf"^{symbol}\s*:(?:[^=]|$)",
    )


def _escaped(text: str) -> str:
    """A regular expression for the text itself, in every dialect."""
    return _META.sub(r"\\\g<0>", text)


def _told(heading: str, hits: Sequence[Hit], remarks: str) -> str:
    """The heading with the number of lines in it, and the lines."""
    files = len({hit.path for hit in hits})
    number = counted(len(hits), "place") + (f" in {counted(files, 'file')}" if files > 1 else "")
    more = f"\n… and {len(hits) - LINES} more" if len(hits) > LINES else ""
    lines = "\n".join(map(str, hits[:LINES]))
    return f"{heading.format(number)}\n\n```\n{lines}{more}\n```{_remarked(remarks)}"


def _remarked(remarks: str) -> str:
    told = remarks.removeprefix("[no matches]").strip()
    return f"\n\n{told}" if told else ""
