"""Which file of a project an import means, as far as names and paths tell."""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

_FOLDERS = frozenset({"__init__", "index", "mod", "init"})
"""Files that stand for their folder."""
_ROOTS = ("", "src", "lib", "app", "python")
_GROUP = re.compile(r"\{([^{}]*)\}")
_KIN: Final[Mapping[str, str]] = {"typescript": "javascript", "tsx": "javascript", "cpp": "c", "kotlin": "java"}
"""Languages that import each other's files."""

Parts = tuple[str, ...]


class Modules:
    """The files of a project as modules, by language."""

    def __init__(self, files: Iterable[tuple[str, str]]) -> None:
        self._paths: set[str] = set()
        self._exact: dict[tuple[str, Parts], str] = {}
        self._ends: dict[tuple[str, str], list[tuple[Parts, str]]] = {}
        for path, language in files:
            kin = _KIN.get(language, language)
            self._paths.add(path)
            parts = _parts(path)
            self._exact.setdefault((kin, parts), path)
            self._ends.setdefault((kin, parts[-1] if parts else ""), []).append((parts, path))
            if kin == "go":
                self._exact.setdefault((kin, parts[:-1]), posixpath.dirname(path) or ".")

    def meant(self, name: str, path: str, language: str) -> str:
        """The file (in Go, the folder) that the file `path` means by importing `name`; empty: none of the project."""
        find = _FINDERS.get(language)
        found = next(filter(None, find(self, name, path)), "") if find else ""
        return "" if found == path else found

    def at(self, kin: str, parts: Sequence[str]) -> str:
        """The module at that very place."""
        return self._exact.get((kin, tuple(parts)), "")

    def file(self, path: str) -> str:
        """The file of that very path."""
        return path if path in self._paths else ""

    def ending(self, kin: str, parts: Sequence[str], near: str) -> str:
        """The module whose path ends so; of several, the one nearest to a file."""
        if not parts:
            return ""
        found = [each for each in self._ends.get((kin, parts[-1]), ()) if each[0][-len(parts) :] == tuple(parts)]
        return max(found, key=lambda each: (_common(each[0], _parts(near)), -len(each[0])))[1] if found else ""


def _parts(path: str) -> Parts:
    """`src/store/__init__.py` is `src`, `store`."""
    parts = posixpath.splitext(path)[0].split("/")
    return tuple(parts[:-1] if parts[-1] in _FOLDERS else parts)


def _common(one: Parts, other: Parts) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _joined(path: str, name: str) -> str:
    """A path as a file at `path` means it."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), name))


def _python(modules: Modules, name: str, path: str) -> Iterator[str]:
    dots = len(name) - len(name.lstrip("."))
    parts = [part for part in name.split(".") if part]
    if dots:
        folder = posixpath.dirname(path).split("/") if "/" in path else []
        yield modules.at("python", [*folder[: len(folder) - dots + 1], *parts])
    elif len(parts) == 1:
        places = [*([root] if root else [] for root in _ROOTS), *_beside(modules, path)]
        yield from (modules.at("python", [*place, *parts]) for place in places)
    elif parts:
        yield modules.ending("python", parts, path)


def _beside(modules: Modules, path: str) -> Iterator[list[str]]:
    """The folder of a script, where it may import from; a package's isn't."""
    folder = posixpath.dirname(path)
    if not modules.file(posixpath.join(folder, "__init__.py")):
        yield folder.split("/") if folder else []


def _javascript(modules: Modules, name: str, path: str) -> Iterator[str]:
    if name.startswith("."):
        place = _joined(path, name)
        yield modules.file(place)
        yield modules.at("javascript", place.split("/"))
        yield modules.at("javascript", _parts(place))
    elif name.startswith(("@/", "~/")):
        yield modules.ending("javascript", _parts(name[2:]), path)


def _c(modules: Modules, name: str, path: str) -> Iterator[str]:
    yield modules.file(_joined(path, name))
    yield from (modules.file(posixpath.join(root, name)) for root in ("", "include", "src"))
    if "/" in name:
        yield modules.ending("c", _parts(name), path)


def _go(modules: Modules, name: str, path: str) -> Iterator[str]:
    parts = name.split("/")
    if "." in parts[0]:
        yield from (modules.at("go", parts[start:]) for start in range(1, len(parts)))


def _dotted(kin: str) -> "_Finder":
    """For Java and Kotlin: a class by its package, or a member of one."""

    def find(modules: Modules, name: str, path: str) -> Iterator[str]:
        parts = name.split(".")
        yield from (modules.ending(kin, parts[:end], path) for end in (len(parts), len(parts) - 1) if end > 1)

    return find


def _php(modules: Modules, name: str, path: str) -> Iterator[str]:
    if name.endswith(".php"):
        yield modules.file(_joined(path, name.rpartition("'")[2].rpartition('"')[2].lstrip("/")))
    parts = name.strip("\\").split("\\")
    yield from (modules.ending("php", parts[start:], path) for start in range(max(len(parts) - 1, 1)) if parts[0])


def _ruby(modules: Modules, name: str, path: str) -> Iterator[str]:
    yield modules.at("ruby", _parts(_joined(path, name)))
    yield from (modules.at("ruby", _parts(posixpath.join(root, name))) for root in ("lib", ""))
    if "/" in name:
        yield modules.ending("ruby", _parts(name), path)


def _lua(modules: Modules, name: str, path: str) -> Iterator[str]:
    parts = name.removesuffix(".lua").replace("/", ".").split(".")
    yield modules.at("lua", [*posixpath.dirname(path).split("/"), *parts])
    yield modules.at("lua", parts)
    if len(parts) > 1:
        yield modules.ending("lua", parts, path)


def _bash(modules: Modules, name: str, path: str) -> Iterator[str]:
    plain = re.sub(r"^\$\{?\w+\}?/|^\$\([^)]*\)/", "", name)
    yield modules.file(_joined(path, plain))
    yield modules.file(posixpath.normpath(plain))


def _rust(modules: Modules, name: str, path: str) -> Iterator[str]:
    """`crate::a::{b, c}`, `super::a`, and `a` of `mod a;`."""
    inside = _GROUP.search(name)
    words = [word.strip() for word in inside[1].split(",")] if inside else [""]
    for word in words:
        whole = (name[: inside.start()] if inside else name) + word
        parts = [part for part in whole.partition(" as ")[0].split("::") if part and part not in {"*", "self"}]
        for base, rest in _rust_places(parts, path):
            yield from (modules.at("rust", [*base, *rest[:end]]) for end in range(len(rest), 0, -1))


def _rust_places(parts: Sequence[str], path: str) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    here = _parts(path)
    own = here[:-1] if here and here[-1] in {"lib", "main"} else here
    if parts and parts[0] == "crate":
        top = max((at for at, part in enumerate(here) if part == "src"), default=-1)
        yield here[: top + 1], parts[1:]
    elif parts and parts[0] == "super":
        up = next((at for at, part in enumerate(parts) if part != "super"), len(parts))
        yield own[: max(len(own) - up, 0)], parts[up:]
    else:
        yield own, parts
        yield own[:-1], parts[:1] if len(parts) == 1 else ()


_Finder = Callable[[Modules, str, str], Iterator[str]]
_FINDERS: Final[Mapping[str, _Finder]] = {
    "python": _python,
    "javascript": _javascript,
    "typescript": _javascript,
    "tsx": _javascript,
    "c": _c,
    "cpp": _c,
    "go": _go,
    "java": _dotted("java"),
    "kotlin": _dotted("java"),
    "php": _php,
    "ruby": _ruby,
    "lua": _lua,
    "bash": _bash,
    "rust": _rust,
}
FOLLOWED: Final = frozenset(_FINDERS)
"""Languages whose imports name files; those of C# and Swift name namespaces and modules."""
