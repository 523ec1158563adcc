"""Which modules of a project import which, what many depend on, and circles."""

from collections.abc import Iterator, Sequence

from denizen.plural import counted
from denizen.structure import Mention
from denizen.tools.analysis.graph import circles
from denizen.tools.analysis.modules import FOLLOWED, Modules
from denizen.tools.analysis.scope import Findings, Scope
from denizen.tools.files.text import printable

MOST_NAMES = 30
"""Modules in one row."""


def imports(scope: Scope) -> Findings:
    """Circles first, then the modules by how many import them; of a single file, its neighbours."""
    languages = {file.path: file.language for file in scope.index.files()}
    graph = _graph(scope, languages)
    findings = _of_file(graph, scope.below) if scope.below in languages else _of_all(graph, scope.below)
    silent = {file.language for file in scope.index.files(below=scope.below)} - FOLLOWED
    findings.remarks = ["imports are followed by names and paths, also those inside functions"]
    if silent:
        findings.remarks += [f"not followed, as they name no files: {', '.join(sorted(silent))}"]
    return findings


def _graph(scope: Scope, languages: dict[str, str]) -> dict[str, set[str]]:
    """The modules of the whole project, each with those that it imports."""
    modules = Modules(languages.items())
    graph: dict[str, set[str]] = {_node(path, language): set() for path, language in languages.items()}
    for path, module, names in _imported(scope.index.references(kinds=("import", "imported"))):
        if language := languages.get(path):
            own = _node(path, language)
            graph[own] |= set(_meant(modules, path, language, (module, names))) - {own}
    return graph


def _meant(modules: Modules, path: str, language: str, imported: tuple[str, Sequence[str]]) -> Iterator[str]:
    """What an import leads to; in Python the names may be modules themselves, and only they are meant then."""
    module, names = imported
    dot = "" if module.endswith(".") else "."
    found = [modules.meant(f"{module}{dot}{name}", path, language) for name in names] if language == "python" else []
    yield from filter(None, found)
    if (not found or not all(found)) and (meant := modules.meant(module, path, language)):
        yield meant


def _imported(mentions: Sequence[Mention]) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Each file with a module that it imports, and the names that it takes from it."""
    file = module = ""
    names: list[str] = []
    for mention in mentions:
        if mention.reference.kind == "import" or mention.file != file:
            if module:
                yield file, module, names
            file, module, names = mention.file, mention.reference.name, list[str]()
        else:
            names.append(mention.reference.name)
    if module:
        yield file, module, names


def _node(path: str, language: str) -> str:
    """What of the project a file is a part of: in Go its folder, else itself."""
    return (path.rpartition("/")[0] or ".") if language == "go" else path


def _of_all(graph: dict[str, set[str]], below: str) -> Findings:
    inside = {node for node in graph if not below or node == below or node.startswith(f"{below}/")}
    importers: dict[str, int] = {}
    for targets in graph.values():
        for target in targets:
            importers[target] = importers.get(target, 0) + 1
    found = circles({node: graph[node] & inside for node in sorted(inside)})
    findings = Findings(
        f"{counted(len(inside), 'module')}, {counted(len(found), 'circle')}; imported by, imports, module"
    )
    for circle in found:
        findings.add(f"circle  {printable(' > '.join(circle))}", circle=circle)
    for node in sorted(inside, key=lambda node: (-importers.get(node, 0), -len(graph[node]), node)):
        if importers.get(node) or graph[node]:
            row = f"{importers.get(node, 0):>4} {len(graph[node]):>3}  {printable(node)}"
            findings.add(row, module=node, imported_by=importers.get(node, 0), imports=sorted(graph[node]))
    return findings


def _of_file(graph: dict[str, set[str]], path: str) -> Findings:
    node = path if path in graph else path.rpartition("/")[0] or "."
    importers = sorted(other for other, targets in graph.items() if node in targets)
    targets = sorted(graph[node])
    findings = Findings(f"{printable(node)} imports {len(targets)} modules of this project, {len(importers)} import it")
    findings.add(f"imports  {_some(targets)}", module=node, imports=targets)
    findings.add(f"imported by  {_some(importers)}", module=node, imported_by=importers)
    return findings


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return printable(", ".join(names[:MOST_NAMES]) or "none") + more
