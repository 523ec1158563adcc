"""Protects what runs by itself outside the sandbox, and disarms what a command made of that kind."""

import os
import re
import stat
import subprocess
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path

from denizen.tools.files.autorun import SKILL, Identity, find_autorun, git_folder, hooks_of, is_git_data, list_entries
from denizen.tools.files.text import printable

_HARMLESS = re.compile(
    r"""
    core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|worktree
      |autocrlf|eol|safecrlf|sparsecheckout|sparsecheckoutcone|quotepath|longpaths|untrackedcache)
    |(user|author|committer)\.(name|email)
    |(advice|branch|color|column|extensions|fetch|log|pull|push|rebase|status)\..*
    |remote\..*\.(url|pushurl|fetch|push|mirror|prune|tagopt|promisor|partialclonefilter)
    |submodule\.(active|.*\.(url|active|branch|ignore|shallow))
    |init\.defaultbranch|lfs\.repositoryformatversion
    """,
    re.VERBOSE | re.DOTALL,
)
"""Git's settings that are known to name no program."""
_PATIENCE = 10.0


class Guard:
    """Notes what runs by itself in `workspace` before a command; what of it must be read-only is `protected`.

    `made` are the repositories that commands of this process made: later commands may change them, and they are checked
    each time. git runs with the PATH of `environ`.
    """

    def __init__(self, workspace: Path, made: set[Identity], environ: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._made = made
        self._environ = {"PATH": environ.get("PATH", ""), "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nowhere"}
        found = [(path, inode) for path, inode in find_autorun(workspace, made.__contains__) if inode not in made]
        self._known = {inode for _, inode in found}
        hooks = {folder for path, _ in found if path.name == ".git" and (folder := hooks_of(path))}
        self._absent = [folder for folder in hooks if workspace in folder.parents and not os.path.lexists(folder)]
        places = {*hooks}
        for path, _ in found:
            real = path.resolve()
            if path == workspace:  # a bare repository: the rest stays writable
                places |= {path / name for name in ("HEAD", "config", "config.worktree", "hooks", "commondir")}
            elif path.name == SKILL and workspace in real.parent.parents:
                places.add(real.parent)
            else:
                places.add(real)
                if path.name == ".git" and (data := git_folder(path.parent)):
                    places.add(data)
        self.protected = tuple(sorted(place for place in places if workspace in place.parents and place.exists()))

    def disarm(self) -> str:
        """Disarm what a command made that would run by itself outside; what that was, for the user and the model."""
        made = find_autorun(self._workspace, lambda inode: inode not in self._known)
        taken: list[str] = []
        for path, inode in [each for each in made if each[1] not in self._known]:
            self._made.add(inode)
            if _kind(path) == stat.S_IFDIR and (path.name == ".git" or _is_repository(path)):
                taken += self._without_programs(path)
            elif path.name != ".git":  # a file or link of that name leads to data that are checked themselves
                taken.append(self._disable(path))
        taken += [self._disable(folder) for folder in self._absent if os.path.lexists(folder)]
        if not taken:
            return ""
        return (
            f"[taken out, because it would run by itself outside the sandbox: {', '.join(taken)}. "
            "Ask the user if it is needed.]"
        )

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
        listed = self._git(settings, "--null", "--name-only", "--list")
        if listed is None:
            yield self._disable(settings)
            return
        for key in dict.fromkeys(listed.split("\0")[:-1]):
            if _HARMLESS.fullmatch(key):
                continue
            if self._git(settings, "--unset-all", key) is None:
                yield self._disable(settings)
                return
            yield f"{printable(key)} in {self._shown(settings)}"

    def _git(self, settings: Path, *words: str) -> str | None:
        """What `git config` answers; None where it can't."""
        command = ["git", "config", "--file", str(settings), *words]
        try:
            ran = subprocess.run(
                command, cwd="/", env=self._environ, capture_output=True, timeout=_PATIENCE, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return ran.stdout.decode(errors="surrogateescape")

    def _disable(self, path: Path) -> str:
        names = (f"{path.name}.disabled{number or ''}" for number in count())
        free = next(name for name in names if not os.path.lexists(path.with_name(name)))
        try:
            path.parent.chmod(stat.S_IMODE(path.parent.stat().st_mode) | stat.S_IRWXU)
            path.rename(path.with_name(free))
        except OSError as error:
            return f"{self._shown(path)} (still there: {error.strerror})"
        return f"{self._shown(path)} (now {printable(free)})"

    def _shown(self, path: Path) -> str:
        return printable(str(path.relative_to(self._workspace)))


def _is_repository(folder: Path) -> bool:
    return is_git_data({entry.name for entry in list_entries(str(folder))})


def _kind(path: Path) -> int | None:
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except OSError:
        return None
