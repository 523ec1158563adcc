"""`PATH/Symbol`: paths that go on inside a file."""

import difflib
import errno
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from denizen.errors import ToolRefused
from denizen.structure import Symbol
from denizen.tools.files.open_path import PathMissing, path_missing
from denizen.tools.files.workspace import Workspace

MAX_SUGGESTIONS = 5  # names that a refusal proposes
_PARTS = re.compile(r"/|::|\.|#")
_NO_NAMES = re.compile(r"\b(?:module\.)?exports\.(?=\w+$)|\.prototype(?=\.)")
_LINE = re.compile(r"^(.*)@(\d+)$", re.DOTALL)
FORWARD = frozenset({"impl", "extension", "declaration"})  # kinds that refer to something defined elsewhere


@dataclass(frozen=True, slots=True)
class Target:
    """The file or folder at `path` (`address` leads there again), and the name of a symbol in it; empty: none.

    `missing` is why the whole can't be the path of a file.
    """

    path: str
    address: str
    is_folder: bool
    symbol: str = ""
    missing: ToolRefused | None = None

    @property
    def shown(self) -> str:
        """The whole path."""
        return f"{self.path}/{self.symbol}" if self.symbol else self.path


def find_target(workspace: Workspace, path: str) -> Target:
    """The longest beginning of `path` that exists, and the rest of it as the name of a symbol.

    A file or folder wins over a symbol of the same name. Raises ToolRefused for one that may not be touched.
    """
    if not path:
        raise ToolRefused("an empty path leads nowhere; the workspace itself is `.`")
    missing: ToolRefused | None = None
    names = path.split("/")
    for count in range(len(names), 0, -1):
        try:
            with workspace.at("/".join(names[:count]) or "/") as place:
                if found := place.stat():
                    rest = "/".join(names[count:]).strip("/")
                    return Target(place.path, place.address, stat.S_ISDIR(found.st_mode), rest, missing)
                missing = missing or path_missing(place.fd, place.name, place.path)
        except ToolRefused as error:
            cause = error.__cause__
            absent = isinstance(cause, OSError) and cause.errno in {errno.ENOTDIR, errno.ENOENT}
            if not absent and not isinstance(error, PathMissing):
                raise
            missing = missing or error
    with workspace.at(".") as place:
        return Target(place.path, place.address, is_folder=True, symbol=path, missing=missing)


def matching(symbols: Sequence[Symbol], name: str) -> list[Symbol]:
    """The symbols meant by `Class/method`, `Class.method` or `Class::method`; `name@12`: the one at that line.

    A whole path wins over the end of one, a definition over an `impl`, an extension or a prototype.
    """
    found = _LINE.match(name)
    if found:
        at = int(found[2])
        around = matching([symbol for symbol in symbols if symbol.first <= at <= symbol.last], found[1])
        return [symbol for symbol in around if at in {symbol.line, symbol.first}] or around
    wanted = names_of(name)
    whole = [symbol for symbol in symbols if symbol.path == name or names_of(symbol.path) == wanted]
    ends = whole or [symbol for symbol in symbols if names_of(symbol.path)[-len(wanted) :] == wanted]
    definitions = [symbol for symbol in ends if symbol.kind not in FORWARD]
    return definitions if len(definitions) == 1 else ends


def no_such_symbol(where: str, symbols: Sequence[Symbol], name: str) -> ToolRefused:
    """The refusal of a name that no symbol has; it proposes the symbols with the closest names."""
    paths: dict[str, list[str]] = {}
    for symbol in symbols:
        paths.setdefault(symbol.name.casefold(), []).append(symbol.path)
    last = names_of(name.partition("@")[0])[-1].casefold()
    near = difflib.get_close_matches(last, paths, MAX_SUGGESTIONS, 0.6)
    found = [*dict.fromkeys(path for key in near for path in paths[key])][:MAX_SUGGESTIONS]
    hint = f"; the nearest: {', '.join(found)}" if found else ""
    return ToolRefused(f"{where} has no symbol {name!r}{hint}")


def names_of(path: str) -> list[str]:
    """The names in a path, whatever separates them; `prototype` and `exports` don't count."""
    return [part for part in _PARTS.split(_NO_NAMES.sub("", path)) if part] or [path]
