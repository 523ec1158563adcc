"""Protects what runs by itself outside the sandbox, and disarms what a command made of that kind."""

import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

import msgspec

from denizen.config.files import read_file
from denizen.text.printable import printable
from denizen.trusted.autorun import SKILL, Autorun, Identity, git_folder, is_git_data, list_entries
from denizen.trusted.git_settings import MAX_BYTES, ask_git, is_harmless
from denizen.trusted.programs import find_program

_MAX_KEYS = 50  # that are removed from a file of settings: each takes git a start
_MAX_NAME_BYTES = 4_096  # bytes of a file that names another


class _StateBefore(msgspec.Struct):
    """The state before a command; `device` is the workspace's, whose number may differ after a restart.

    `protected` are places, which commands can't change, but move with a folder that they are in.
    """

    device: int
    identities: set[Identity]
    protected: Sequence[str]


class Guard:
    """Looks what runs by itself in `workspace`; what of it must be read-only is then `protected`.

    `made` are the repositories that commands of this process made: later commands may change them, and they are checked
    each time. git is that of `environ`; `commands` are those of hooks and MCP servers, as `Autorun` takes them.
    """

    def __init__(
        self,
        workspace: Path,
        made: set[Identity],
        environ: Mapping[str, str],
        commands: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.workspace = workspace.resolve()
        self._made = made
        self._git = find_program("git", environ, workspace, otherwise="/usr/bin/git")
        self._autorun = Autorun(workspace, environ, commands)
        self.protected: tuple[Path, ...] = ()

    def before(self) -> object:
        """Note what is there, and what of it must be protected; as JSON has it."""
        found = {path: inode for path, inode in self._autorun.find(self._made.__contains__) if inode not in self._made}
        places = set[Path]()
        for path in (path for path in found if not path.is_symlink()):
            if path == self.workspace:  # a bare repository: the rest stays writable
                places |= {path / name for name in ("HEAD", "config", "config.worktree", "hooks", "commondir")}
            elif path.name == SKILL and self.workspace in path.parent.parents:
                places.add(path.parent)
            else:
                places.add(path)
                if path.name == ".git" and (data := git_folder(path.parent)):
                    places.add(data.resolve())
        places = {place for place in places if self.workspace in place.parents and place.exists()}
        self.protected = tuple(sorted(place for place in places if places.isdisjoint(place.parents)))
        known = _StateBefore(self.workspace.stat().st_dev, {*found.values()}, [*map(str, self.protected)])
        return msgspec.to_builtins(known)

    def after(self, before: object) -> str:
        """Disarm what wasn't there and would run by itself outside; what that was, for the user and the model."""
        known = msgspec.convert(before, _StateBefore)
        device = self.workspace.stat().st_dev
        identities = {(device if number == known.device else number, *rest) for number, *rest in known.identities}
        taken: list[str] = []
        for path, inode in self._autorun.find(lambda inode: inode not in identities):
            try:
                if inode not in identities:
                    taken += self._disarm(path, inode)
                elif path == self.workspace:  # a bare repository: what it lacked could be made
                    taken += self._without_programs(path, known.protected)
            except (OSError, ValueError) as error:  # one odd file must not hide the others
                taken.append(f"{self._shown(path)} (still there: {error})")
        notes = []
        if taken:
            what = f"[taken out, because it would run by itself outside the sandbox: {', '.join(taken)}. "
            notes.append(f"{what}Ask the user if it is needed.]")
        if gone := [place for place in map(Path, known.protected) if not os.path.lexists(place)]:
            names = ", ".join(map(self._shown, gone))
            notes.append(f"[moved away with its folder: {names}. Programs that look for it there don't find it.]")
        return "\n".join(notes)

    def _disarm(self, path: Path, inode: Identity) -> Iterator[str]:
        is_folder = _kind(path) == stat.S_IFDIR
        if path.name == ".git" or (is_folder and _is_repository(path)):
            self._made.add(inode)
            if is_folder:  # a file or link of that name leads to data that are checked themselves
                yield from self._without_programs(path)
        elif os.path.lexists(path):
            yield self._disable(path)

    def _without_programs(self, repository: Path, held: Sequence[str] = ()) -> Iterator[str]:
        """Disarm git's data, except what commands couldn't change."""
        names = ("hooks", "config", "config.worktree", "commondir")
        for place in (repository / name for name in names if str(repository / name) not in held):
            kind = _kind(place)
            if kind is None or (place.name == "commondir" and self._shares_known(repository)):
                continue
            if place.name == "hooks" and kind == stat.S_IFDIR:
                entries = (entry for entry in list_entries(str(place)) if "." not in entry.name)
                yield from (self._disable(Path(entry.path)) for entry in entries)
            elif place.name.startswith("config") and kind == stat.S_IFREG:
                yield from self._without_keys(place)
            else:
                yield self._disable(place)

    def _shares_known(self, repository: Path) -> bool:
        """Whether the data that it shares are checked, or protected, themselves."""
        try:
            name = os.fsdecode(read_file(repository / "commondir", _MAX_NAME_BYTES) or b"").strip()
            shared = Path(os.path.realpath(repository / name))
        except (OSError, ValueError):
            return False
        return _is_repository(shared) and not _kind(shared / "commondir")

    def _without_keys(self, settings: Path) -> Iterator[str]:
        is_small = settings.stat().st_size <= MAX_BYTES
        listing = ("config", "--file", str(settings), "--null", "--name-only", "--list")
        listed = ask_git(self._git, *listing) if is_small else None
        keys = [key for key in dict.fromkeys((listed or "").split("\0")[:-1]) if not is_harmless(key)]
        if listed is not None and not keys:
            return
        copy = _free(settings)
        if listed is not None and len(keys) <= _MAX_KEYS and self._unset(settings, keys, copy):
            yield from (f"{_shown(key)} in {self._shown(settings)} (kept in {copy.name})" for key in keys)
        else:
            yield self._disable(settings)

    def _unset(self, settings: Path, keys: Sequence[str], copy: Path) -> bool:
        try:
            shutil.copy(settings, copy)
        except OSError:
            return False
        unset = ("config", "--file", str(settings), "--unset-all")
        return all(ask_git(self._git, *unset, key) is not None for key in keys)

    def _disable(self, path: Path) -> str:
        free = _free(path)
        try:
            path.parent.chmod(stat.S_IMODE(path.parent.stat().st_mode) | stat.S_IRWXU)
            path.rename(free)
        except OSError as error:
            return f"{self._shown(path)} (still there: {error.strerror})"
        return f"{self._shown(path)} (now {_shown(free.name)})"

    def _shown(self, path: Path) -> str:
        return _shown(str(path.relative_to(self.workspace)))


def _free(path: Path) -> Path:
    """A name next to it that nothing obeys."""
    names = (path.with_name(f"{path.name}.disabled{number or ''}") for number in count())
    return next(name for name in names if not os.path.lexists(name))


def _is_repository(folder: Path) -> bool:
    return is_git_data({entry.name for entry in list_entries(str(folder))})


def _kind(path: Path) -> int | None:
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except OSError:
        return None


def _shown(name: str) -> str:
    return printable(name).replace("\n", "\ufffd")
