"""`analyze callers` and `callees`: by name, because only a run would show which of several with one name is meant."""

import builtins
import difflib
import functools
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence

from denizen.errors import ToolRefused
from denizen.structure import FUNCTIONS, TYPES, Located
from denizen.text.plural import counted, first_of
from denizen.tools.files.text import printable
from denizen.worlds.code.tools.analysis.scope import Findings, Scope
from denizen.worlds.code.tools.symbols.target import names_of

BY_NAME = "found by name: others of the same name count too, calls through variables don't"
MAX_LINES = 5  # line numbers of one caller
MAX_NAMES = 40  # names of functions that are defined elsewhere
MAX_PLACES = 3  # definitions of one name
_CALLS = ("call", "base")
_CALLABLE = FUNCTIONS | TYPES | {"macro"}
_JAVASCRIPT = "Array Boolean Date Error Function Map Object Promise RegExp Set String"
_BUILTINS = frozenset((*dir(builtins), *_JAVASCRIPT.split()))
"""Names that exist in Python and JavaScript without a definition or an import."""


def callers(scope: Scope, name: str, defined_in: str = "") -> Findings:
    """The functions in which something of that name is called, or made a base of a type.

    Raises ToolRefused for an unknown name.
    """
    plain = _names(name)[-1]
    mentions = scope.index.references(name=plain, kinds=_CALLS, below=scope.below)
    defined = sorted(_defined(scope, name, defined_in), key=lambda each: not each.file.startswith(scope.below))
    if not mentions and not defined:
        raise _unknown(scope, name)
    places: dict[str, list[int]] = {}
    for mention in mentions:
        place = f"{mention.file}/{mention.within.path}" if mention.within else mention.file
        places.setdefault(place, []).append(mention.reference.line)
    findings = Findings(
        f"{printable(plain)} ({_where(defined)}): {counted(len(mentions), 'call')} in {counted(len(places), 'place')}"
    )
    for place, lines in sorted(places.items(), key=lambda each: (-len(each[1]), each[0])):
        numbers = [str(line) for line in dict.fromkeys(lines)]
        shown = ",".join(numbers[:MAX_LINES]) + (",…" if len(numbers) > MAX_LINES else "")
        findings.add(f"{printable(place)}:{shown}", caller=place, lines=lines)
    findings.remarks = [BY_NAME]
    return findings


def callees(scope: Scope, name: str, defined_in: str = "") -> Findings:
    """The functions called inside the functions or types of that name, and where each is defined.

    Raises ToolRefused for a name that isn't defined.
    """
    defined = [each for each in _defined(scope, name, defined_in or scope.below) if each.symbol.kind in _CALLABLE]
    if not defined:
        raise _unknown(scope, name)
    called: dict[str, list[int]] = {}
    for located in defined:
        lines = (located.symbol.first, located.symbol.last)
        for mention in scope.index.references(kinds=_CALLS, below=located.file, lines=lines):
            called.setdefault(mention.reference.name, []).append(mention.reference.line)
    findings = Findings(f"{_where(defined)} calls")
    elsewhere: list[str] = []
    source = functools.cache(scope.source)
    for callee, lines in called.items():
        found = [each for each in scope.index.symbols(name=callee, kinds=_CALLABLE) if each not in defined]
        if callee in _BUILTINS:
            found = _in_sight(scope, callee, found, {each.file: source for each in defined})
        if found:
            found.sort(key=lambda each: -len(posixpath.commonprefix([each.file, defined[0].file])))
            places = [f"{each.path}:{each.symbol.line}" for each in found]
            findings.add(f"{printable(callee)}  {_where(found)}", name=callee, lines=lines, defined=places)
        else:
            elsewhere.append(callee)
            findings.facts.append({"name": callee, "lines": lines, "defined": []})
    names = printable(first_of(elsewhere, MAX_NAMES))
    findings.remarks = [*([f"not defined here: {names}"] if elsewhere else []), BY_NAME]
    return findings


def _in_sight(
    scope: Scope, name: str, found: Sequence[Located], files: Mapping[str, Callable[[str], bytes]]
) -> list[Located]:
    """The definitions of a builtin's name that are in the files, imported there, or methods called with a dot there."""
    if any(mention.file in files for mention in scope.index.references(name=name, kinds=("imported",))):
        return [*found]
    dotted = re.compile(rf"\.\s*{re.escape(name)}\s*\(".encode())
    methods = any(each.symbol.kind == "method" for each in found)
    called = methods and any(dotted.search(source(file)) for file, source in files.items())
    return [each for each in found if each.file in files or (called and each.symbol.kind == "method")]


def _defined(scope: Scope, name: str, defined_in: str) -> list[Located]:
    """The symbols of that name, which may go on to the left: `Store.add`, `store.py/Store/add`."""
    wanted = _names(name)
    found = scope.index.symbols(name=wanted[-1], below=defined_in)
    return [each for each in found if (_names(each.file) + _names(each.symbol.path))[-len(wanted) :] == wanted]


def _names(path: str) -> list[str]:
    return names_of(path.removesuffix("()"))


def _where(defined: Sequence[Located]) -> str:
    places = [f"{each.path}:{each.symbol.line}" for each in defined]
    return printable(first_of(places, MAX_PLACES)) or "not defined here"


def _unknown(scope: Scope, name: str) -> ToolRefused:
    names = {each.symbol.name for each in scope.index.symbols(kinds=_CALLABLE)}
    near = difflib.get_close_matches(_names(name)[-1], names, 3, 0.6)
    return ToolRefused(f"nothing here is called {name!r}" + (f"; the nearest: {', '.join(near)}" if near else ""))
