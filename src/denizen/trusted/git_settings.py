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
from denizen.config.pattern import pattern
from denizen.trusted.programs import find_program

_HARMLESS_KEYS = pattern(
    r"""
    core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|worktree
      |autocrlf|eol|safecrlf|sparsecheckout|sparsecheckoutcone|quotepath|longpaths|untrackedcache
      |excludesfile|attributesfile|abbrev|checkstat|commentchar|compression|preloadindex|trustctime|whitespace)
    |(user|author|committer)\.(name|email|signingkey|useconfigonly)
    |(advice|branch|color|column|extensions|fetch|log|pull|push|rebase|rerere|stash|status)\..*
    |diff\.(algorithm|colormoved|colormovedws|context|indentheuristic|mnemonicprefix|noprefix|renamelimit|renames)
    |merge\.(autostash|conflictstyle|ff|log|renamelimit|renames|stat)
    |(commit|tag)\.gpgsign|commit\.(cleanup|status|verbose)|gc\.(auto|autodetach)
    |http\.(.*\.)?(proxy|postbuffer|version|lowspeedlimit|lowspeedtime)|lfs\.(url|.*\.locksverify)
    |remote\..*\.(url|pushurl|fetch|push|mirror|prune|tagopt|promisor|partialclonefilter)
    |submodule\.(active|.*\.(url|active|branch|ignore|shallow))
    |init\.defaultbranch|lfs\.repositoryformatversion|commit\.template|mailmap\.file|blame\.ignorerevsfile
    """,
    re.VERBOSE | re.DOTALL,
)
"""Git's settings that are known to name no program."""
_INCLUDE = pattern(r"include(if\..*)?\.path", re.DOTALL)
_HOME = pattern(r"\$(HOME\b|\{HOME\})")
_VARIABLE = pattern(r"\$(\w+|\{[^}]*\}|\([^)]*\))|`[^`]*`")
_TIMEOUT_S = 10.0
MAX_BYTES = 4_000_000
"""Of a file of settings: git isn't asked to read a larger one."""

_USER_VARIABLES = ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")

_Signature = tuple[int, ...]  # of a file's state; empty if there is no regular file, or a huge one


def is_harmless(key: str) -> bool:
    """Whether a setting is known to name no program."""
    return _HARMLESS_KEYS.fullmatch(key) is not None


def ask_git(git: str, *words: str, environ: Mapping[str, str] = {}) -> str | None:
    """The output of the program `git` outside any repository; None if it fails, takes too long or isn't there."""
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
    except (OSError, subprocess.SubprocessError):
        return None
    return os.fsdecode(ran.stdout)


class GitSettings:
    """Asks the git of an environment, never one of `workspace`, once for each file of settings and state of it."""

    def __init__(self, environ: Mapping[str, str], workspace: Path) -> None:
        self._git = find_program("git", environ, workspace, otherwise="/usr/bin/git")
        self._environ = {name: value for name, value in environ.items() if name in _USER_VARIABLES}
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
                    yield from self._named(value, roots)

    def _named(self, command: str, roots: Sequence[str]) -> Iterator[str]:
        """The files that a command may name from these folders, and from those that it names: it may go there."""
        folders = [*roots]
        for word in _words(command, self._environ["HOME"]):
            for place in [*dict.fromkeys(os.path.join(folder, self._expanded(word)) for folder in folders)]:
                if not os.path.isdir(place):
                    yield place
                elif place not in folders:
                    folders.append(place)

    def named(self, command: str, folder: str) -> Iterator[str]:
        """The places, there or not, that a command run in a folder names; except folders."""
        places = (os.path.join(folder, self._expanded(word)) for word in _words(command, self._environ["HOME"]))
        return (place for place in places if not os.path.isdir(place))

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
    """The keys and values in a file; none if git can't read it, and then fails wherever it is used."""
    listed = ask_git(git, "config", "--file", file, "--list", "-z") if state else None
    return [(key, value) for key, _, value in (each.partition("\n") for each in (listed or "").split("\0")[:-1])]


def _signature(file: str) -> _Signature:
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return ()
    can_be_read = stat.S_ISREG(found.st_mode) and found.st_size <= MAX_BYTES
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns) if can_be_read else ()


def _words(command: str, home: str) -> Iterator[str]:
    """The words of a shell command that may be a file's name: with a slash or a dot, variable parts left out.

    With those of a command that is itself a word, as of `sh -c '…'`.
    """
    lexer = shlex.shlex(command.removeprefix("!"), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = [*lexer]
    except ValueError:
        words = command.split()
    for word in words:
        if len(word.split()) > 1 and word != command:
            yield from _words(word, home)
        name = _VARIABLE.sub("", _HOME.sub(lambda _: home, word)).rpartition("=")[2]
        if "/" in name or "." in name.strip("."):
            yield name
            if name.startswith("/"):  # what follows `$(git rev-parse --show-toplevel)` or `$PWD`
                yield name.lstrip("/")
