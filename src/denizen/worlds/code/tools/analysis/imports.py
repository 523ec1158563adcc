"""`analyze imports`: which modules of a project import which, the most imported ones, and import cycles."""

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Final

from denizen.text.plural import counted, first_of
from denizen.tools.files.text import printable
from denizen.worlds.code.tools.analysis.scope import Findings, Scope

MAX_NAMES = 30  # modules in one row
FOLLOWED: Final = frozenset(
    {"python", "javascript", "typescript", "tsx", "c", "cpp", "go"}
    | {"java", "kotlin", "php", "ruby", "lua", "bash", "rust"}
)
"""Languages whose imports name files; those of C# and Swift name namespaces and modules."""
_FAMILY: Final = {"typescript": "javascript", "tsx": "javascript", "cpp": "c", "kotlin": "java"}
"""Languages that import each other's files."""
_WITH_SUFFIX: Final = frozenset({"c", "php", "bash"})  # languages whose imports name a file with its suffix
_FOLDER_FILES: Final = frozenset({"__init__", "index", "mod", "init"})
"""Files that are imported by the name of their folder."""
_ROOTS: Final = ("", "src", "lib", "app", "python")
_SEARCHED: Final = {"c": ("", "include", "src"), "ruby": ("lib", ""), "lua": ("",), "bash": ("",)}
"""Folders where a path is looked up after that of the importing file."""

Graph = Mapping[str, Set[str]]
Parts = tuple[str, ...]


def imports(scope: Scope) -> Findings:
    """Cycles first, then the modules by how many import them; for a single file, its neighbours."""
    languages = {file.path: file.language for file in scope.index.files()}
    graph = _graph(scope, languages)
    if scope.below in languages:
        node = scope.below if scope.below in graph else posixpath.dirname(scope.below) or "."
        importers = sorted(other for other, targets in graph.items() if node in targets)
        targets = sorted(graph[node])
        findings = Findings(
            f"{printable(node)} imports {len(targets)} modules of this project, {len(importers)} import it"
        )
        named = printable(first_of(targets, MAX_NAMES)) or "none"
        findings.add(f"imports  {named}", module=node, imports=targets)
        named = printable(first_of(importers, MAX_NAMES)) or "none"
        findings.add(f"imported by  {named}", module=node, imported_by=importers)
    else:
        findings = _of_all(graph, scope.below)
    findings.remarks = ["imports are followed by names and paths, also those inside functions"]
    if unfollowed := {file.language for file in scope.index.files(below=scope.below)} - FOLLOWED:
        findings.remarks += [f"not followed, because they name no files: {', '.join(sorted(unfollowed))}"]
    return findings


def _of_all(graph: dict[str, set[str]], below: str) -> Findings:
    inside = {node for node in graph if not below or node == below or node.startswith(f"{below}/")}
    importers = Counter(target for targets in graph.values() for target in targets)
    found = cycles({node: graph[node] & inside for node in sorted(inside)})
    findings = Findings(
        f"{counted(len(inside), 'module')}, {counted(len(found), 'cycle')}; imported by, imports, module"
    )
    for cycle in found:
        findings.add(f"cycle  {printable(' > '.join(cycle))}", cycle=cycle)
    for node in sorted(inside, key=lambda node: (-importers[node], -len(graph[node]), node)):
        if importers[node] or graph[node]:
            row = f"{importers[node]:>4} {len(graph[node]):>3}  {printable(node)}"
            findings.add(row, module=node, imported_by=importers[node], imports=sorted(graph[node]))
    return findings


def _graph(scope: Scope, languages: dict[str, str]) -> dict[str, set[str]]:
    """Each module of the whole project with those that it imports. In Go, a module is a folder."""

    def node(path: str) -> str:
        return (posixpath.dirname(path) or ".") if languages[path] == "go" else path

    modules = Modules(languages.items())
    graph: dict[str, set[str]] = {node(path): set() for path in languages}
    imported: list[tuple[str, str, list[str]]] = []  # each file with a module, and the names that it takes from it
    for mention in scope.index.references(kinds=("import", "imported")):
        if mention.reference.kind == "import" or not imported or imported[-1][0] != mention.file:
            imported.append((mention.file, mention.reference.name, []))
        else:
            imported[-1][2].append(mention.reference.name)
    for path, module, names in imported:
        if module and (language := languages.get(path)):
            # in Python the imported names may be modules themselves; if all are, only they are meant
            dot = "" if module.endswith(".") else "."
            found = [modules.find(f"{module}{dot}{each}", path, language) for each in names if language == "python"]
            if not found or not all(found):
                found.append(modules.find(module, path, language))
            graph[node(path)] |= {*filter(None, found)} - {node(path)}
    return graph


class Modules:
    """Finds the file that an import means, as far as names and paths tell."""

    def __init__(self, files: Iterable[tuple[str, str]]) -> None:
        self._paths: set[str] = set()
        self._exact: dict[tuple[str, Parts], str] = {}
        self._by_last: dict[tuple[str, str], list[tuple[Parts, str]]] = {}
        for path, language in files:
            family = _FAMILY.get(language, language)
            parts = _parts(path)
            self._paths.add(path)
            self._exact.setdefault((family, parts), path)
            self._by_last.setdefault((family, parts[-1] if parts else ""), []).append((parts, path))
            if family == "go":
                self._exact.setdefault((family, parts[:-1]), posixpath.dirname(path) or ".")

    def find(self, name: str, path: str, language: str) -> str:
        """The file (in Go, the folder) that the file `path` means by importing `name`; empty: none of the project."""
        if language not in FOLLOWED:
            return ""
        family = _FAMILY.get(language, language)
        is_package = posixpath.join(posixpath.dirname(path), "__init__.py") in self._paths
        for candidate, exact in _candidates(name, path, family, is_package=is_package):
            if not exact:
                found = self._nearest(family, candidate, path)
            elif (place := posixpath.normpath(candidate) if "." in candidate else candidate.rstrip("/")) in self._paths:
                found = place
            elif family not in _WITH_SUFFIX:
                parts = tuple(part for part in place.split("/") if part not in {"", "."})
                found = self._exact.get((family, parts)) or self._exact.get((family, _parts(place)))
            else:
                found = None
            if found:
                return "" if found == path else found
        return ""

    def _nearest(self, family: str, end: str, near: str) -> str | None:
        """The module whose path ends so; if there are several, the one nearest to a file."""
        here = _parts(near)
        for parts in (tuple(end.split("/")), _parts(end)):
            modules = self._by_last.get((family, parts[-1]), ()) if parts else ()
            if found := [each for each in modules if each[0][-len(parts) :] == parts]:
                return max(found, key=lambda each: (len(posixpath.commonprefix([each[0], here])), -len(each[0])))[1]
        return None


def _parts(path: str) -> Parts:
    """`src/store/__init__.py` is `src`, `store`."""
    parts = posixpath.splitext(path)[0].split("/")
    return tuple(parts[:-1] if parts[-1] in _FOLDER_FILES else parts)


def _candidates(name: str, path: str, family: str, *, is_package: bool) -> Iterator[tuple[str, bool]]:
    """The paths that an import may mean, the likeliest first; `False` with those that are the end of a path."""
    folder = posixpath.dirname(path)
    match family:
        case "python":
            dots = len(name) - len(name.lstrip("."))
            module = "/".join(filter(None, name.split(".")))
            if dots or "/" not in module:
                next_to_script = [] if is_package else [folder]
                roots = [folder + "/.." * (dots - 1)] if dots else [*_ROOTS, *next_to_script]
                yield from ((posixpath.join(root, module), True) for root in roots)
            else:
                yield module, False
        case "javascript":
            if name.startswith("."):
                yield posixpath.join(folder, name), True
            elif name.startswith(("@/", "~/")):
                yield name[2:], False
        case "c" | "ruby" | "lua" | "bash":
            if family == "lua":
                name = name.removesuffix(".lua").replace(".", "/")
            name = re.sub(r"^\$\{?\w+\}?/|^\$\([^)]*\)/", "", name)  # "$HERE/lib.sh"
            yield from ((posixpath.join(root, name), True) for root in (folder, *_SEARCHED[family]))
            if "/" in name and family != "bash":
                yield name, False
        case "go":
            first, *rest = name.split("/")
            if "." in first:
                yield from (("/".join(rest[start:]), True) for start in range(len(rest)))
        case "java":  # a class by its package, or a member of one
            parts = name.split(".")
            yield from (("/".join(parts[:end]), False) for end in (len(parts), len(parts) - 1) if end > 1)
        case "php":
            yield posixpath.join(folder, re.split("['\"]", name)[-1].lstrip("/")), True
            parts = name.strip("\\").split("\\")
            yield from (("/".join(parts[start:]), False) for start in range(max(len(parts) - 1, 1)))
        case _:
            yield from ((candidate, True) for candidate in _rust_candidates(name, path))


def _rust_candidates(name: str, path: str) -> Iterator[str]:
    """The paths meant by `crate::a::{b, c}`, `super::a`, and the `a` of `mod a;`."""
    here = _parts(path)
    own = here[:-1] if here and here[-1] in {"lib", "main"} else here
    before, _, group = name.partition("{")
    for word in group.rstrip("} ").split(","):
        whole = (before + word.strip()).partition(" as ")[0]
        parts = [part for part in whole.split("::") if part and part not in {"*", "self"}]
        ups = next((at for at, part in enumerate(parts) if part != "super"), len(parts))
        if parts[:1] == ["crate"]:
            top = max((at for at, part in enumerate(here) if part == "src"), default=-1)
            places = [(here[: top + 1], parts[1:])]
        elif ups:
            places = [(own[: max(len(own) - ups, 0)], parts[ups:])]
        else:
            places = [(own, parts), (own[:-1], parts if len(parts) == 1 else [])]
        for base, rest in places:
            yield from ("/".join([*base, *rest[:end]]) for end in range(len(rest), 0, -1))


def cycles(graph: Graph) -> list[list[str]]:
    """For each set of nodes that all lead to each other, a shortest cycle through its first; the largest set first."""
    reverse: dict[str, set[str]] = {}
    for node, targets in graph.items():
        for target in targets:
            reverse.setdefault(target, set()).add(node)
    order = [node for tree in _trees(graph, graph) for node in tree]
    sets = [sorted(tree) for tree in _trees(reverse, reversed(order)) if len(tree) > 1]  # Kosaraju's algorithm
    found: list[list[str]] = []
    for nodes in sorted(sets, key=lambda each: (-len(each), each)):
        inside, start = set(nodes), nodes[0]
        came = dict[str, str]()  # each node with the one before it, on a shortest way from the start
        edge = [start]
        while edge and start not in came:
            edge = [new for node in edge for new in sorted(graph[node] & inside) if came.setdefault(new, node) == node]
        way = [start]
        while len(way) == 1 or way[-1] != start:
            way.append(came[way[-1]])
        found.append(way[::-1])
    return found


def _trees(graph: Graph, starts: Iterable[str]) -> Iterator[list[str]]:
    """The nodes reached from each start and not before, in the order in which a depth-first walk ends.

    Without recursion, as graphs may be deep.
    """
    seen = set[str]()
    for start in starts:
        tree: list[str] = []
        path = list[tuple[str, Iterator[str]]]() if start in seen else [(start, iter(graph.get(start, ())))]
        seen.add(start)
        while path:
            following = next((target for target in path[-1][1] if target not in seen), None)
            if following is None:
                tree.append(path.pop()[0])
            else:
                seen.add(following)
                path.append((following, iter(graph.get(following, ()))))
        yield tree
