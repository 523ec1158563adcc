"""Git's settings as git reads them, and the files in a work tree that they name."""

# paths are text: hundreds are looked at for each command
# ruff: noqa: PTH111, PTH112, PTH116, PTH118, PTH120

import os
import re
import shlex
import stat
import subprocess
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

from denizen.config.home import user_folder
from denizen.errors import ToolRefused
from denizen.trusted.programs import find_program

_HARMLESS = re.compile(
    r"""
    core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|worktree
      |autocrlf|eol|safecrlf|sparsecheckout|sparsecheckoutcone|quotepath|longpaths|untrackedcache
      |excludesfile|attributesfile)
    |(user|author|committer)\.(name|email)
    |(advice|branch|color|column|extensions|fetch|log|pull|push|rebase|status)\..*
    |remote\..*\.(url|pushurl|fetch|push|mirror|prune|tagopt|promisor|partialclonefilter)
    |submodule\.(active|.*\.(url|active|branch|ignore|shallow))
    |init\.defaultbranch|lfs\.repositoryformatversion|commit\.template|mailmap\.file|blame\.ignorerevsfile
    """,
    re.VERBOSE | re.DOTALL,
)
"""Git's settings that are known to name no program."""
_INCLUDE = re.compile(r"include(if\..*)?\.path", re.DOTALL)
_VARIABLE = re.compile(r"\$(\w+|\{[^}]*\}|\([^)]*\))|`[^`]*`")
_TIMEOUT_S = 10.0

_OF_USER = ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")

_Signature = tuple[int, ...]  # of a file's state; empty where there is no regular file


def is_harmless(key: str) -> bool:
    """Whether a setting is known to name no program."""
    return _HARMLESS.fullmatch(key) is not None


def ask_git(git: str, *words: str, environ: Mapping[str, str] = {}) -> str | None:
    """What the program `git` answers outside any repository; None where it fails or isn't there.

    Raises ToolRefused when it takes too long.
    """
    try:
        ran = subprocess.run(
            [git, *words],
            cwd="/",
            env={"GIT_DIR": os.devnull, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolRefused(f"git took longer than {_TIMEOUT_S:g} s to read its settings: {error.cmd}") from error
    except (OSError, subprocess.CalledProcessError):
        return None
    return os.fsdecode(ran.stdout)


class GitSettings:
    """Asks the git of an environment, never one of `workspace`, once for each file of settings and state of it."""

    def __init__(self, environ: Mapping[str, str], workspace: Path) -> None:
        self._git = find_program("git", environ, workspace, otherwise="/usr/bin/git")
        self._environ = {name: value for name, value in environ.items() if name in _OF_USER}
        self._environ["HOME"] = str(user_folder(environ))

    def places(self, tree: str, files: Sequence[str]) -> Iterator[str]:
        """Where settings name hooks, programs and further settings, there or not, for a work tree.

        Settings are those in `files`, and the user's own. Each file comes before it is read: what the caller moves away
        then isn't. An include counts whether its condition is met or not.
        """
        pending, seen, roots = deque([*files, *self._own_files]), set[str](), [tree]
        while pending:
            file = pending.popleft()
            if file in seen:
                continue
            seen.add(file)
            yield file
            folder = os.path.dirname(file)
            settings = _settings_in(file, _signature(file), self._git)
            roots += [os.path.join(folder, value) for key, value in settings if key == "core.worktree"]
            for key, value in settings:
                if _INCLUDE.fullmatch(key):
                    pending.append(os.path.join(folder, self._expanded(value)))
                elif key == "core.hookspath":
                    yield from (os.path.join(root, self._expanded(value)) for root in roots)
                elif not is_harmless(key) and (not key.startswith("alias.") or value.startswith("!")):
                    named = (os.path.join(root, self._expanded(word)) for word in _words(value) for root in roots)
                    yield from (place for place in named if not os.path.isdir(place))

    @cached_property
    def _own_files(self) -> Sequence[str]:
        """The user's files of settings and the machine's, there or not: git says which have any."""
        home = self._environ["HOME"]
        listed = (
            ask_git(self._git, "config", "--list", "--show-origin", "--name-only", "-z", environ=self._environ) or ""
        )
        files = [origin.removeprefix("file:") for origin in listed.split("\0")[:-1:2]]
        others = self._environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
        return [*dict.fromkeys([*files, "/etc/gitconfig", f"{home}/.gitconfig", f"{others}/git/config"])]

    def _expanded(self, path: str) -> str:
        return f"{self._environ['HOME']}{path[1:]}" if path.startswith("~/") else os.path.expanduser(path)


@lru_cache(maxsize=4096)
def _settings_in(file: str, state: _Signature, git: str) -> Sequence[tuple[str, str]]:
    """The keys and values in a file; none where git can't read it, and then fails wherever it is used."""
    listed = ask_git(git, "config", "--file", file, "--list", "-z") if state else None
    return [(key, value) for key, _, value in (each.partition("\n") for each in (listed or "").split("\0")[:-1])]


def _signature(file: str) -> _Signature:
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return ()
    is_file = stat.S_ISREG(found.st_mode)
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns) if is_file else ()


def _words(command: str) -> Iterator[str]:
    """The words of a shell command that may be a file's name: with a slash or a dot, variable parts left out."""
    lexer = shlex.shlex(command.removeprefix("!"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = [*lexer]
    except ValueError:
        words = command.split()
    for word in words:
        name = _VARIABLE.sub("", word).rpartition("=")[2]
        if "/" in name or "." in name.strip("."):
            yield name
            if name.startswith("/"):  # what follows `$(git rev-parse --show-toplevel)` or `$PWD`
                yield name.lstrip("/")
