"""Who calls a function, and what it calls: by name, as which of several of one name is meant only a run would show."""

import builtins
import difflib
import posixpath
import re
from collections.abc import Iterable, Sequence

from denizen.errors import ToolRefused
from denizen.plural import counted
from denizen.structure import FUNCTIONS, TYPES, Located, Mention
from denizen.tools.analysis.scope import Findings, Scope
from denizen.tools.files.text import printable
from denizen.tools.symbols.target import names_of

BY_NAME = "found by name: others of the same name count too, calls through variables don't"
MOST_LINES = 5
"""Line numbers of one caller."""
MOST_NAMES = 40
"""Names of functions that are defined elsewhere."""
_CALLS = ("call", "base")
_CALLABLE = FUNCTIONS | TYPES | {"macro"}
_OF_JAVASCRIPT = (
    "Array",
    "Boolean",
    "Date",
    "Error",
    "Function",
    "Map",
    "Object",
    "Promise",
    "RegExp",
    "Set",
    "String",
)
_BUILTINS = frozenset((*dir(builtins), *_OF_JAVASCRIPT))
"""Names that mean something without being defined or imported, in Python and JavaScript."""


def callers(scope: Scope, name: str, defined_in: str = "") -> Findings:
    """The functions in which something of that name is called, or made a base of a type.

    Raises ToolRefused for a name that is nowhere.
    """
    plain = _plain(name)
    mentions = scope.index.references(name=plain, kinds=_CALLS, below=scope.below)
    defined = sorted(_defined(scope, name, defined_in), key=lambda each: not each.file.startswith(scope.below))
    if not mentions and not defined:
        raise _unknown(scope, name)
    places: dict[str, list[int]] = {}
    for mention in mentions:
        places.setdefault(_within(mention), []).append(mention.reference.line)
    findings = Findings(
        f"{printable(plain)} ({_where(defined)}): {counted(len(mentions), 'call')} in {counted(len(places), 'place')}"
    )
    for place, lines in sorted(places.items(), key=lambda each: (-len(each[1]), each[0])):
        findings.add(f"{printable(place)}:{_lines(lines)}", caller=place, lines=lines)
    findings.remarks = [BY_NAME]
    return findings


def callees(scope: Scope, name: str, defined_in: str = "") -> Findings:
    """What is called inside the functions or types of that name, and where each is defined.

    Raises ToolRefused for a name that isn't defined.
    """
    defined = [each for each in _defined(scope, name, defined_in or scope.below) if each.symbol.kind in _CALLABLE]
    if not defined:
        raise _unknown(scope, name)
    findings = Findings(f"{_where(defined)} calls")
    elsewhere: list[str] = []
    for callee, lines in _called(scope, defined).items():
        found = [each for each in scope.index.symbols(name=callee, kinds=_CALLABLE) if each not in defined]
        if callee in _BUILTINS:
            found = [each for each in found if _is_in_sight(scope, each, defined)]
        if found:
            found.sort(key=lambda each: -len(posixpath.commonprefix([each.file, defined[0].file])))
            places = [f"{each.path}:{each.symbol.line}" for each in found]
            findings.add(f"{printable(callee)}  {_where(found)}", name=callee, lines=lines, defined=places)
        else:
            elsewhere.append(callee)
            findings.facts.append({"name": callee, "lines": lines, "defined": []})
    findings.remarks = [*([f"not defined here: {_some(elsewhere)}"] if elsewhere else []), BY_NAME]
    return findings


def _is_in_sight(scope: Scope, meant: Located, users: Iterable[Located]) -> bool:
    """Whether what has a builtin's name is defined in the file of a user, imported there, or called with a dot."""
    name = meant.symbol.name
    for file in {user.file for user in users}:
        if meant.file == file or scope.index.references(name=name, kinds=("imported",), below=file):
            return True
        dotted = re.compile(rf"\.\s*{re.escape(name)}\s*\(".encode())
        if meant.symbol.kind == "method" and dotted.search(scope.source(file)):
            return True
    return False


def _called(scope: Scope, symbols: Iterable[Located]) -> dict[str, list[int]]:
    """The names that are called in the symbols, with the lines, in the order of the text."""
    called: dict[str, list[int]] = {}
    for located in symbols:
        lines = (located.symbol.first, located.symbol.last)
        for mention in scope.index.references(kinds=_CALLS, below=located.file, lines=lines):
            called.setdefault(mention.reference.name, []).append(mention.reference.line)
    return called


def _defined(scope: Scope, name: str, defined_in: str) -> list[Located]:
    """The symbols of that name, which may go on to the left: `Store.add`, `store.py/Store/add`."""
    wanted = _split(name)
    found = scope.index.symbols(name=wanted[-1], below=defined_in)
    return [each for each in found if (_split(each.file) + _split(each.symbol.path))[-len(wanted) :] == wanted]


def _plain(name: str) -> str:
    return _split(name)[-1]


def _split(path: str) -> list[str]:
    return names_of(path.removesuffix("()"))


def _within(mention: Mention) -> str:
    return f"{mention.file}/{mention.within.path}" if mention.within else mention.file


def _where(defined: Sequence[Located]) -> str:
    if not defined:
        return "not defined here"
    more = f" and {len(defined) - 3} more" if len(defined) > 3 else ""
    return printable(", ".join(f"{each.path}:{each.symbol.line}" for each in defined[:3])) + more


def _lines(lines: Sequence[int]) -> str:
    numbers = [str(line) for line in dict.fromkeys(lines)]
    return ",".join(numbers[:MOST_LINES]) + (",…" if len(numbers) > MOST_LINES else "")


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return printable(", ".join(names[:MOST_NAMES])) + more


def _unknown(scope: Scope, name: str) -> ToolRefused:
    names = {each.symbol.name for each in scope.index.symbols(kinds=_CALLABLE)}
    near = difflib.get_close_matches(_plain(name), names, 3, 0.6)
    return ToolRefused(f"nothing here is called {name!r}" + (f"; the nearest: {', '.join(near)}" if near else ""))
