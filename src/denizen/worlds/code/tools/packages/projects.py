"""Finds the projects of a workspace: their manifests, and the lock file in force for each."""

import re
import stat
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Final, TypeVar

from denizen.errors import ToolRefused
from denizen.tools.files.changes import load
from denizen.tools.files.walk import SkippedEntries, walk
from denizen.tools.files.workspace import Workspace
from denizen.worlds.code.tools.packages import locks, manifests
from denizen.worlds.code.tools.packages.graph import Ecosystem, LockFile, Manifest, Project

MAX_MANIFESTS = 20  # manifests that are read

_MANIFESTS: Final[Mapping[str, tuple[Ecosystem, Callable[[str], Manifest]]]] = {
    "pyproject.toml": ("PyPI", manifests.read_pyproject),
    "Pipfile": ("PyPI", manifests.read_pipfile),
    "package.json": ("npm", manifests.read_package_json),
    "Cargo.toml": ("crates.io", manifests.read_cargo),
    "go.mod": ("Go", manifests.read_go_mod),
}
_LOCKS: Final[Mapping[Ecosystem, Mapping[str, Callable[[str], LockFile]]]] = {
    "PyPI": {
        "uv.lock": locks.read_uv,
        "poetry.lock": locks.read_poetry,
        "pdm.lock": locks.read_pdm,
        "Pipfile.lock": locks.read_pipfile_lock,
        "pylock.toml": locks.read_pylock,
    },
    "npm": {
        "package-lock.json": locks.read_package_lock,
        "npm-shrinkwrap.json": locks.read_package_lock,
        "yarn.lock": locks.read_yarn,
        "pnpm-lock.yaml": locks.read_pnpm,
    },
    "crates.io": {"Cargo.lock": locks.read_cargo_lock},
    "Go": {},
}
_REQUIREMENTS = re.compile(r"requirements(?:[-_.](\w+))?\.txt")
_FOREIGN_FOLDERS = frozenset(
    {"node_modules", "site-packages", ".venv", "venv", "vendor", "fixtures", "__fixtures__", "testdata"}
)
"""Folders of what others wrote, or of what tests read."""

T = TypeVar("T")


@dataclass(slots=True)
class FoundProjects:
    """The projects, the manifests below them that weren't read, and the files that can't be read, with the reason."""

    projects: list[Project] = field(default_factory=list)
    others: Sequence[str] = ()
    unread: list[str] = field(default_factory=list)


def find_projects(workspace: Workspace, path: str, stop: threading.Event) -> FoundProjects:
    """The projects in the folder `path`, or if it has none, in those nearest below; or that of one manifest.

    Raises ToolRefused if there is none at all.
    """
    found: list[str] = []
    with workspace.at(path) as place:
        status, top = place.stat(), place.path
        is_file = status is not None and stat.S_ISREG(status.st_mode)
        if is_file and _is_manifest(place.name):
            found.append(top)
    with closing(walk(workspace, path, SkippedEntries(), stop)) as entries:
        for entry in entries if not found else ():
            names = entry.names
            is_test_data = "data" in names and not {"test", "tests"}.isdisjoint(names[: names.index("data")])
            if entry.is_file and _is_manifest(names[-1]) and _FOREIGN_FOLDERS.isdisjoint(names) and not is_test_data:
                found.append("/".join([*([] if top == "." else [top]), *names]))
    ordered = sorted(found, key=lambda each: (each.count("/"), each))
    if not ordered:
        raise ToolRefused(
            f"{path} has no manifest: no pyproject.toml, requirements.txt, package.json, Cargo.toml or go.mod"
        )
    nearest = [each for each in ordered if each.count("/") == ordered[0].count("/")][:MAX_MANIFESTS]
    folders: dict[str, list[str]] = {}
    for each in nearest:
        folders.setdefault(str(PurePosixPath(each).parent), []).append(each)
    reader = _ProjectReader(workspace)
    reader.found.projects += [project for group in folders.values() for project in reader.projects(group)]
    reader.found.others = ordered[len(nearest) :]
    return reader.found


def _is_manifest(name: str) -> bool:
    return name in _MANIFESTS or _REQUIREMENTS.fullmatch(name) is not None


class _ProjectReader:
    """Reads manifests and lock files, each lock file once."""

    def __init__(self, workspace: Workspace) -> None:
        self.found = FoundProjects()
        self._workspace = workspace
        self._locks: dict[str, LockFile | None] = {}

    def projects(self, paths: Sequence[str]) -> Iterator[Project]:
        """The projects of one folder's manifests; requirements files count where no other one names dependencies."""
        python_wants = False
        requirements: list[str] = []
        for path in paths:
            if PurePosixPath(path).name not in _MANIFESTS:
                requirements.append(path)
                continue
            ecosystem, read = _MANIFESTS[PurePosixPath(path).name]
            manifest = self._read(path, read)
            if manifest is None:
                continue
            python_wants = python_wants or (ecosystem == "PyPI" and bool(manifest.wanted))
            project = self._locked(path, ecosystem, manifest)
            has_lock = project.locked_by and not _is_manifest(PurePosixPath(project.locked_by).name)
            if manifest.wanted or manifest.name or has_lock:
                yield project
        for path in [] if python_wants else requirements:
            if read := self._read(path, locks.read_requirements):
                group = _REQUIREMENTS.fullmatch(PurePosixPath(path).name)
                wanted = [replace(each, kind=(group and group[1]) or "") for each in read[0].wanted]
                yield Project(path, "PyPI", Manifest("", "", wanted), path if read[1].packages else "", read[1])

    def _locked(self, path: str, ecosystem: Ecosystem, manifest: Manifest) -> Project:
        if ecosystem == "Go":
            return Project(path, ecosystem, manifest, PurePosixPath(path).name, locks.locked_by_go_mod(manifest))
        for folder in PurePosixPath(path).parents:
            for name, read in _LOCKS[ecosystem].items():
                if lock := self._lock(str(folder / name), read):
                    below = str(PurePosixPath(path).parent.relative_to(folder))
                    member = manifest.name if ecosystem == "crates.io" else below.removeprefix(".")
                    return Project(path, ecosystem, manifest, str(folder / name), lock, member)
        pins = str(PurePosixPath(path).with_name("requirements.txt"))
        if ecosystem == "PyPI" and (lock := self._lock(pins, lambda source: locks.read_requirements(source)[1])):
            return Project(path, ecosystem, manifest, pins, lock)
        return Project(path, ecosystem, manifest)

    def _lock(self, path: str, read: Callable[[str], LockFile]) -> LockFile | None:
        if path not in self._locks:
            with self._workspace.at(path) as place:
                there = place.stat() is not None
            self._locks[path] = self._read(path, read) if there else None
        return self._locks[path]

    def _read(self, path: str, read: Callable[[str], T]) -> T | None:
        """The parsed file; None, with a remark, if it can't be read."""
        try:
            return read(load(self._workspace, path).text)
        except ToolRefused as refused:
            self.found.unread.append(str(refused))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as broken:
            # The files are anybody's, and may hold anything where their format wants something else.
            self.found.unread.append(f"{path} can't be understood: {broken}")
        return None
