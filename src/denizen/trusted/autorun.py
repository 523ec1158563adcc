"""Files in a workspace that other programs run or obey by themselves, git's data above all: writing them needs a yes.

A repository's data is in `.git`, or where a `.git` file says, as in linked worktrees and submodules.
"""

# paths are text: thousands are looked at for each command
# ruff: noqa: PTH101, PTH112, PTH114, PTH115, PTH118, PTH120, PTH207

import glob
import hashlib
import os
import re
import stat
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path

from denizen.config.trust import SKILL_FOLDERS
from denizen.trusted.environment import own_environment
from denizen.trusted.git_settings import GitSettings

DENIZEN_FILES = ("denizen.toml", ".denizen", ".claude/agents")  # at the workspace's root: what the agent may do
SKILL = "SKILL.md"
NAME_PROGRAMS = (
    *(".envrc", "mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml"),
    *(".mise/config.toml", ".config/mise.toml", ".config/mise/config.toml"),
    *(".vscode/tasks.json", ".vscode/settings.json", ".vscode/launch.json", ".vscode/mcp.json", ".mcp.json"),
    *(".idea/runConfigurations/*", ".idea/watcherTasks.xml", ".idea/startup.xml", ".husky/*"),
    *(".claude/settings.json", ".claude/settings.local.json", ".claude/commands", ".claude/hooks"),
    *(".devcontainer.json", ".devcontainer/devcontainer.json", ".devcontainer/*/devcontainer.json"),
)
"""Files in any folder by which shells, editors and git hooks start programs."""
_NAME_PROGRAMS_IN_DEPENDENCIES = (".envrc", ".vscode/tasks.json")
_DEPENDENCIES = {"node_modules", "site-packages", "vendor"}
"""Folders of third-party packages, which bring such files along; nobody opens an editor there."""
_AT_FDCWD, _AT_SYMLINK_NOFOLLOW, _STATX_BTIME = -100, 0x100, 0x800
_MAX_BYTES = 10_000
_MAX_LINKS = 40
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)

Identity = tuple[int, int, str]
"""A file's device and inode, which it keeps wherever it is moved, and when it was made; of a link where it leads.

The number of an inode may be another file's later.
"""


def _by_first_name(patterns: Sequence[str]) -> dict[str, list[str]]:
    names = [pattern.split("/")[0] for pattern in patterns]
    return {name: [each for each in patterns if each.split("/")[0] == name] for name in names}


def _matching(patterns: Sequence[str]) -> re.Pattern[str]:
    """Matches paths that end with one of the patterns, or are in such a folder."""
    either = "|".join(re.escape(pattern).replace(r"\*", "[^/]*") for pattern in patterns)
    return re.compile(rf"(^|.*/)({either})(/|$)", re.IGNORECASE | re.DOTALL)


_PATTERNS = _by_first_name(NAME_PROGRAMS), _by_first_name(_NAME_PROGRAMS_IN_DEPENDENCIES)
_NAMES = _matching(NAME_PROGRAMS), _matching(_NAME_PROGRAMS_IN_DEPENDENCIES)


class Autorun:
    """Finds what runs by itself in a workspace; git, its settings and the user's home are those of `environ`.

    `commands` are those of hooks and MCP servers, each after the folder that it is run in (empty: the workspace).
    """

    def __init__(self, workspace: Path, environ: Mapping[str, str], commands: Sequence[tuple[str, str]] = ()) -> None:
        self._workspace = str(workspace.resolve())
        self._commands = commands
        self._settings = GitSettings(environ, workspace)

    def find(self, enter: Callable[[Identity], bool]) -> Iterator[tuple[Path, Identity]]:
        """Ours, skills, git's data and files that name programs; then what git's settings name.

        Each comes before it is followed: what the caller moves away then leads nowhere. No path has a link on its way:
        the links are found themselves, and where they lead. `enter` says whether to look inside git's data found.
        """
        trees: dict[str, str] = {}
        for place in chain(self._listed(enter, trees), self._named_by_settings(trees)):
            yield from _existing(place)

    def includes(self, path: str) -> bool:
        """Whether a file at `path`, there or not, is one that a person decides about; the tools never write the others.

        Repositories that were made elsewhere in the workspace since the first such question don't count.
        """
        if "\0" in path:
            return False
        root = Path(self._workspace)
        place = Path(os.path.realpath(root / path))
        if not place.is_relative_to(root):
            return False
        if any(place.is_relative_to(own) for own in own_environment(root)):
            return True
        written = Path(os.path.normpath(root / path))
        ways = [way.relative_to(root).parts for way in (place, written) if way.is_relative_to(root)]
        for folder in [(root / name).resolve() for name in SKILL_FOLDERS]:
            if place.is_relative_to(folder) and place != folder:
                skill = folder / place.relative_to(folder).parts[0] / SKILL
                if place == skill or skill.exists():
                    return True
        for names in ways:
            if names[:1] == (".denizen",) or names[:2] == (".claude", "agents"):
                return True
            if _NAMES[not _DEPENDENCIES.isdisjoint(names)].match("/".join(names)):
                return True
        around = {str(folder): f"{folder}/.git" for folder in place.parents if os.path.lexists(f"{folder}/.git")}
        trees, listed = self._surveyed
        named = chain(listed, self._named_by_settings({**trees, **around}))
        return any(place.is_relative_to(each) for each in named)

    @cached_property
    def _surveyed(self) -> tuple[Mapping[str, str], set[str]]:
        """The work trees of all repositories in the workspace, with their `.git` or data; and where links lead."""
        trees: dict[str, str] = {}
        listed = {*self._listed(lambda _: False, trees)}
        return trees, listed.difference(trees.values(), [f"{self._workspace}/denizen.toml"])

    def _listed(self, enter: Callable[[Identity], bool], trees: dict[str, str]) -> Iterator[str]:
        """Where such names and commands lead, there or not; `trees` gets work trees, those around the workspace too."""
        root = self._workspace
        skills = (str(path) for name in SKILL_FOLDERS for path in Path(root, name).glob(f"*/{SKILL}"))
        own = map(str, own_environment(Path(root)))
        named = (place for at, text in self._commands for place in self._settings.named(text, os.path.join(root, at)))
        yield from self._reached([*(f"{root}/{name}" for name in DENIZEN_FILES), *skills, *own, *named])
        around = (str(folder).rstrip("/") for folder in Path(root).parents)
        trees |= {folder: f"{folder}/.git" for folder in around if os.path.lexists(f"{folder}/.git")}
        pending = [(root, _PATTERNS[0])]
        while pending:
            folder, patterns = pending.pop()
            entries = list_entries(folder)
            names = {entry.name for entry in entries}
            if folder.endswith("/.git") or is_git_data(names):
                if not folder.endswith("/.git"):
                    trees[folder] = folder
                found = [*_existing(folder)]
                yield folder
                if folder != root and not all(enter(identity) for _, identity in found):
                    continue
            for entry in entries:
                if entry.name == ".git":
                    trees[folder] = entry.path
                if entry.is_dir(follow_symlinks=False):
                    pending.append((entry.path, _PATTERNS[1] if entry.name in _DEPENDENCIES else patterns))
                elif entry.name == ".git":
                    yield entry.path
            for name in names.intersection(patterns):
                for pattern in patterns[name]:
                    place = f"{glob.escape(folder)}/{pattern}"
                    paths = glob.glob(place, include_hidden=True) if "*" in pattern else [f"{folder}/{pattern}"]
                    yield from self._reached(paths)

    def _named_by_settings(self, trees: Mapping[str, str]) -> Iterator[str]:
        """Places in the workspace, there or not, that settings of these work trees and the user's own name."""
        seen = set[str]()
        for tree, data in {"/": "", **trees}.items():
            own = _own_files(data) if data else []  # which are part of git's data, unless they are links
            for place in chain(self._settings.places(tree, own[:2]), own[2:]):
                if place in seen:
                    continue
                seen.add(place)
                for path in (place, *_links_in(place)):
                    yield from (step for step in _steps(path) if self._is_inside(step) and step not in own)

    def _reached(self, paths: Sequence[str]) -> Iterator[str]:
        return (step for path in paths for step in _steps(path) if self._is_inside(step))

    def _is_inside(self, place: str) -> bool:
        return place.startswith(f"{self._workspace}/")


def list_entries(folder: str) -> list[os.DirEntry[str]]:
    """The entries of a folder; none if it can't be read.

    One that can be entered and not listed is made readable: git finds a repository in it by name.
    """
    try:
        mode = os.lstat(folder).st_mode
        if mode & stat.S_IXUSR and not mode & stat.S_IRUSR:  # by a descriptor: a command may put a link in its place
            fd = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.chmod(f"/proc/self/fd/{fd}", stat.S_IMODE(os.fstat(fd).st_mode) | stat.S_IRUSR)
            finally:
                os.close(fd)
        with os.scandir(folder) as entries:
            return [*entries]
    except OSError:
        return []


def git_folder(workspace: Path) -> Path | None:
    """The git data of the repository whose root `workspace` is; None if it isn't the root of one.

    A `.git` file may name any place; one outside the workspace is believed only if it points back, as git makes it.
    """
    entry = workspace / ".git"
    if entry.is_symlink():
        return None
    if entry.is_dir():
        return entry
    name = _text(entry).removeprefix("gitdir:").strip()
    folder = _real(workspace, name)
    if not name or not os.path.isdir(folder):
        return None
    if folder.is_relative_to(workspace.resolve()):
        return folder
    if linked := _text(folder / "gitdir").strip():
        return folder if _real(folder, linked) == _real(workspace, ".git") else None
    submodule = _WORKTREE.search(_text(folder / "config"))
    return folder if submodule and _real(folder, submodule[1].strip('"')) == workspace.resolve() else None


def shared_git_folder(folder: Path) -> Path:
    """The data that a linked worktree shares with the others; of any other repository, its folder."""
    return folder.parent.parent if folder.parent.name == "worktrees" else folder


def is_git_data(names: set[str]) -> bool:
    """Whether git takes a folder with these entries for a repository's data, whatever its name."""
    return "HEAD" in names and ({"objects", "refs"} <= names or "commondir" in names)


def completes_git_data(root: str, names: Sequence[str]) -> bool:
    """Whether a file written at `names` below `root` would be part of a repository's data under another name."""
    for depth, name in enumerate(names):
        folder = "/".join([root, *names[:depth]])
        there = {entry for entry in ("HEAD", "objects", "refs", "commondir") if os.path.lexists(f"{folder}/{entry}")}
        if is_git_data(there | {name}):
            return True
    return False


def foreign_git_data(folder: Path, workspace: Path) -> str:
    """A path in a repository's data that leads outside the workspace; empty: none does.

    Data that is itself outside has none: it points back, so git made it.
    """
    root = workspace.resolve()
    if not folder.resolve().is_relative_to(root):
        return ""
    common = _text(folder / "commondir").strip()
    if common and not _real(folder, common).is_relative_to(root):
        return str(folder / "commondir")
    for top, folders, files in os.walk(folder):
        if top == str(folder):
            folders[:] = [name for name in folders if name in {"objects", "refs", "logs", "worktrees"}]
        for path in (f"{top}/{name}" for name in (*folders, *files)):
            if os.path.islink(path) and not Path(os.path.realpath(path)).is_relative_to(root):
                return path
        if top == f"{folder}/objects":  # of thousands, and none can be found without knowing its name
            folders[:] = [name for name in folders if name == "pack"]
    return ""


def _existing(path: str) -> Iterator[tuple[Path, Identity]]:
    try:
        found = os.lstat(path)
        leads = os.readlink(path) if stat.S_ISLNK(found.st_mode) else ""
    except (OSError, ValueError):
        return
    digest = hashlib.blake2b(os.fsencode(leads), digest_size=8).hexdigest() if leads else _born(path)
    yield Path(path), (found.st_dev, found.st_ino, digest)


def _born(path: str) -> str:
    """When a file was made, in any form; empty if the system doesn't say. Linux: statx(2)."""
    import ctypes

    answer = ctypes.create_string_buffer(256)
    try:
        failed = ctypes.pythonapi.statx(_AT_FDCWD, os.fsencode(path), _AT_SYMLINK_NOFOLLOW, _STATX_BTIME, answer)
    except AttributeError:
        return ""
    return "" if failed else answer.raw[80:92].hex()


def _steps(path: str) -> Iterator[str]:
    """The links on the way to an absolute path, then the place where it leads, there or not."""
    place, links = "", 0
    pending = deque(path.split("/"))
    while pending and links < _MAX_LINKS:
        name = pending.popleft()
        if name in {"", "."}:
            continue
        if name == "..":
            place = place.rpartition("/")[0]
            continue
        step = f"{place}/{name}"
        try:
            leads = os.readlink(step)
        except (OSError, ValueError):
            place = step
            continue
        yield step
        links += 1
        place = "" if leads.startswith("/") else place
        pending.extendleft(reversed(leads.split("/")))
    yield place


def _links_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_symlink()]
    except (OSError, ValueError):
        return []


def _own_files(entry: str) -> list[str]:
    """The settings, and the folder of hooks, of the repository of a `.git`, or of data under another name."""
    named = _text(Path(entry)).removeprefix("gitdir:").strip()
    data = os.path.realpath(os.path.join(os.path.dirname(entry), named) if named else entry)
    shared = os.path.realpath(os.path.join(data, _text(Path(data, "commondir")).strip()))
    return [f"{shared}/config", f"{data}/config.worktree", f"{shared}/hooks"]


def _real(folder: Path, name: str) -> Path:
    return Path(os.path.realpath(folder / name))


def _text(path: Path) -> str:
    """The beginning of a small file; empty if it isn't text."""
    if not path.is_file():
        return ""
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        text = file.read(_MAX_BYTES)
    return "" if "\0" in text else text
