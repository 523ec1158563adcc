"""Protects what runs by itself outside the sandbox, and disarms what a command made of that kind."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

import msgspec

from denizen.printable import printable
from denizen.trusted.autorun import SKILL, Autorun, Identity, git_folder, is_git_data, list_entries
from denizen.trusted.git_settings import ask_git, is_harmless
from denizen.trusted.programs import find_program


class _Known(msgspec.Struct):
    """What was there before a command; `device` is the workspace's, whose number may be another after a restart.

    `protected` are places, which commands can't change, but move with a folder that they are in.
    """

    device: int
    identities: set[Identity]
    protected: Sequence[str]


class Guard:
    """Looks what runs by itself in `workspace`; what of it must be read-only is then `protected`.

    `made` are the repositories that commands of this process made: later commands may change them, and they are checked
    each time. git is that of `environ`.
    """

    def __init__(self, workspace: Path, made: set[Identity], environ: Mapping[str, str]) -> None:
        self.workspace = workspace.resolve()
        self._made = made
        self._git = find_program("git", environ, workspace, otherwise="/usr/bin/git")
        self._autorun = Autorun(workspace, environ)
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
        known = _Known(self.workspace.stat().st_dev, {*found.values()}, [*map(str, self.protected)])
        return msgspec.to_builtins(known)

    def after(self, before: object) -> str:
        """Disarm what wasn't there and would run by itself outside; what that was, for the user and the model."""
        known = msgspec.convert(before, _Known)
        device = self.workspace.stat().st_dev
        identities = {(device if number == known.device else number, *rest) for number, *rest in known.identities}
        taken: list[str] = []
        for path, inode in self._autorun.find(lambda inode: inode not in identities):
            if inode in identities:
                continue
            is_folder = _kind(path) == stat.S_IFDIR
            if is_folder and (path.name == ".git" or _is_repository(path)):
                self._made.add(inode)
                taken += self._without_programs(path)
            elif path.name == ".git":  # a file or link of that name leads to data that are checked themselves
                self._made.add(inode)
            elif os.path.lexists(path):
                taken.append(self._disable(path))
        notes = []
        if taken:
            what = f"[taken out, because it would run by itself outside the sandbox: {', '.join(taken)}. "
            notes.append(f"{what}Ask the user if it is needed.]")
        if gone := [place for place in map(Path, known.protected) if not os.path.lexists(place)]:
            names = ", ".join(map(self._shown, gone))
            notes.append(f"[moved away with its folder: {names}. Programs that look for it there don't find it.]")
        return "\n".join(notes)

    def _without_programs(self, repository: Path) -> Iterator[str]:
        hooks = repository / "hooks"
        if _kind(hooks) not in {None, stat.S_IFDIR}:
            yield self._disable(hooks)
        elif _kind(hooks):
            entries = (entry for entry in list_entries(str(hooks)) if "." not in entry.name)
            yield from (self._disable(Path(entry.path)) for entry in entries)
        for settings in (repository / "config", repository / "config.worktree"):
            if _kind(settings) == stat.S_IFREG:
                yield from self._without_keys(settings)
            elif _kind(settings):
                yield self._disable(settings)
        if _kind(repository / "commondir") and not self._shares_known(repository):
            yield self._disable(repository / "commondir")

    def _shares_known(self, repository: Path) -> bool:
        """Whether the data that it shares are checked, or protected, themselves."""
        try:
            shared = (repository / (repository / "commondir").read_text().strip()).resolve()
            return _is_repository(shared) and not _kind(shared / "commondir")
        except (OSError, ValueError):
            return False

    def _without_keys(self, settings: Path) -> Iterator[str]:
        file = ("config", "--file", str(settings))
        listed = ask_git(self._git, *file, "--null", "--name-only", "--list")
        if listed is None:
            yield self._disable(settings)
            return
        for key in dict.fromkeys(listed.split("\0")[:-1]):
            if is_harmless(key):
                continue
            if ask_git(self._git, *file, "--unset-all", key) is None:
                yield self._disable(settings)
                return
            yield f"{_shown(key)} in {self._shown(settings)}"

    def _disable(self, path: Path) -> str:
        names = (f"{path.name}.disabled{number or ''}" for number in count())
        free = next(name for name in names if not os.path.lexists(path.with_name(name)))
        try:
            path.parent.chmod(stat.S_IMODE(path.parent.stat().st_mode) | stat.S_IRWXU)
            path.rename(path.with_name(free))
        except OSError as error:
            return f"{self._shown(path)} (still there: {error.strerror})"
        return f"{self._shown(path)} (now {_shown(free)})"

    def _shown(self, path: Path) -> str:
        return _shown(str(path.relative_to(self.workspace)))


def _is_repository(folder: Path) -> bool:
    return is_git_data({entry.name for entry in list_entries(str(folder))})


def _kind(path: Path) -> int | None:
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except OSError:
        return None


def _shown(name: str) -> str:
    return printable(name).replace("\n", "\ufffd")
