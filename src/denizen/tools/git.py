"""`git`: what the repository says, without changing it and without running anything that it brings along."""

import asyncio
import os
import posixpath
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

import msgspec

from denizen.config.pattern import pattern
from denizen.config.rules import DeniedPaths
from denizen.config.settings import SandboxSettings
from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult
from denizen.ports import Sandbox, Sandboxed, ToolContext, Traits
from denizen.tools.function import FunctionTool, tool
from denizen.tools.programs.process import BoundedOutput, run
from denizen.tools.sandbox.environment import CommandEnvironment
from denizen.trusted.autorun import foreign_git_data, git_folder
from denizen.trusted.programs import find_program, trusted_environ

_COMMANDS = {
    "status": ["--ignore-submodules=dirty"],
    "log": ["--no-ext-diff", "--no-textconv"],
    "diff": ["--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"],
    "show": ["--no-ext-diff", "--no-textconv"],
    "blame": ["--no-textconv"],
}
_SETTINGS = (
    *("core.fsmonitor=false", "core.hooksPath=/dev/null", "color.ui=never", "status.submoduleSummary=false"),
    *("diff.external=false", "diff.submodule=short", "log.showSignature=false", "log.diffMerges=separate"),
    *(f"gpg.{kind}program=false" for kind in ("", "openpgp.", "x509.", "ssh.")),
)
_PROGRAM_SETTINGS = r"^((filter|diff)\..*\.(clean|smudge|process|required|command|textconv)|blame\.ignorerevsfile)$"
"""Settings by which a repository names its own programs, and a file that git quotes if it finds it wrong."""
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # nothing is fetched, so no program is asked to
    "GIT_NO_LAZY_FETCH": "1",
}
_TIMEOUT_S = 60.0
_PLAIN_OPTION = pattern(
    r"-(?:[abcefgilmpqrstuwzDEFPRW]+|[nGLMU]|[nU]?\d+|M\d+%?)|--(?:abbrev|abbrev-commit|after|all|author|before|branch"
    r"|branches|cached|cc|committer|compact-summary|date|decorate|diff-filter|dirstat|end-of-options|first-parent|follow"
    r"|format|graph|grep|histogram|ignore-all-space|ignore-space-change|ignored|left-right|long|max-count|merge-base"
    r"|merges|minimal|name-only|name-status|no-color|no-decorate|no-merges|no-notes|no-patch|no-renames|numstat|oneline"
    r"|patch|patience|porcelain|pretty|raw|reverse|shortstat|short|show-stash|since|skip|staged|stat|summary|tags|text"
    r"|topo-order|unified|until|untracked-files|word-diff)(?:=.*)?",
    re.DOTALL,
)
"""Options that only read this repository, whichever of the commands they are given to."""
_FOLLOW_RENAMES = ("--follow", "-L")
_SHELL_OPERATORS = frozenset({"|", ">", ">>", "2>&1", "2>/dev/null", "&&", "||", ";"})


def git_tool(environ: Mapping[str, str], sandbox: Sandbox | None = None, *, most: int = 40_000) -> FunctionTool:
    """The tool that reads a workspace's repository; `most` bytes of git's answer are kept.

    It runs in `sandbox` if that confines: there git can't write, and reads only the repository. Otherwise, and if
    the user's policy denies paths, it takes only options that are known to be harmless.
    """
    environment = CommandEnvironment(SandboxSettings(), environ, {}).variables | _ENVIRONMENT

    @tool(traits=Traits.READS | Traits.REPEATABLE)
    async def git(args: str, turn: ToolContext) -> ToolResult:
        """Read the git repository: status, log, diff, show, blame.

        Args:
            args: As on a command line, `log -n 5 --stat -- src`.
        """
        command, words = _split(args)
        confining = sandbox if sandbox and sandbox.confines else None
        if turn.denied.patterns or not confining:
            check_plain(command, words, turn.workspace)
        folder = git_folder(turn.workspace)
        if folder is None:
            raise ToolRefused(f"{turn.workspace} is not the root of a git repository")
        try:
            program = find_program("git", environment, turn.workspace)
        except FileNotFoundError as error:
            raise ToolRefused(f"git can't be started: {error.strerror}") from error
        start = ["--no-pager", "--no-optional-locks", f"--git-dir={folder}", f"--work-tree={turn.workspace}"]
        start += [word for setting in _SETTINGS for word in ("-c", setting)]
        trusted = trusted_environ(environment, turn.workspace)
        repository = _Repository(turn.workspace, [program, *start], trusted)
        harmless = await repository.harmless()
        if turn.denied.patterns:
            words = without_denied(command, words, turn.denied)
            await repository.require_commits(words)
        kept, question = BoundedOutput(most), [*start, *harmless, command, *_COMMANDS[command], *words]
        if confining:
            argv = ["git", *question]  # in the sandbox another one may be seen
            wrapped = await asyncio.to_thread(confining.wrap, argv, workspace=turn.workspace, read_only=True)
            wrapped = msgspec.structs.replace(wrapped, environ={**wrapped.environ, **_ENVIRONMENT})
            status = await repository.run(wrapped, kept.add)
        else:
            if stray := foreign_git_data(folder, turn.workspace):
                raise ToolRefused(f"{stray} leads out of the workspace, so git doesn't run here")
            with tempfile.TemporaryDirectory(prefix="denizen-") as scratch:
                if (folder / "index").is_file():  # git writes into it what it learns about files
                    shutil.copy2(folder / "index", scratch)
                copied = {**trusted, "GIT_INDEX_FILE": f"{scratch}/index"}
                status = await repository.run(Sandboxed([program, *question], copied), kept.add)
        text = kept.text("ask for less, with -n, --stat or a path")
        if status:
            text += f"[exit code {status}]"
        return ToolResult("", "", [Text(text or "[nothing]")], is_error=status != 0)

    return git


def _split(args: str) -> tuple[str, list[str]]:
    """The command of a command line, and the words after it. Raises ToolRefused for what can't be asked here."""
    try:
        words = shlex.split(args)
    except ValueError as error:
        raise ToolRefused(f"git: {args!r} can't be read as a command line: {error}") from error
    while words and words[0] in {"git", "--no-pager"}:
        words = words[1:]
    if not words:
        raise ToolRefused(f"args is empty: begin it with {', '.join(_COMMANDS)}, as in `log -n 5 --stat`")
    command = words[0]
    if command not in _COMMANDS:
        raise ToolRefused(f"git {command} isn't offered here, only {', '.join(_COMMANDS)}; for others use bash")
    if "\0" in args:
        raise ToolRefused(f"git: {args!r} is outside the workspace")
    if shell := next((word for word in words if word in _SHELL_OPERATORS), ""):
        raise ToolRefused(f"git runs without a shell here, so {shell} has no meaning; leave it out, or use bash")
    return command, words[1:]


def only_reads(words: Sequence[str], workspace: Path) -> bool:
    """Whether a command line of git, after its name, is known to be harmless outside a sandbox too."""
    if not words or words[0] not in _COMMANDS:
        return False
    try:
        check_plain(words[0], words[1:], workspace)
    except ToolRefused:
        return False
    return True


def check_plain(command: str, words: Iterable[str], workspace: Path) -> None:
    """Raises ToolRefused for options that aren't known to be harmless, and for paths outside the workspace."""
    for word in words:
        if word.startswith("-") and word not in {"-", "--"}:
            if not _PLAIN_OPTION.fullmatch(word):
                raise ToolRefused(
                    f"git {command} {word} isn't offered here, where options only read this repository; for others use "
                    "bash; the path of a file that looks like an option begins with ./"
                )
        elif _is_outside(word, workspace):
            raise ToolRefused(f"git: {word!r} is outside the workspace")


def without_denied(command: str, words: Sequence[str], denied: DeniedPaths) -> list[str]:
    """The words with all denied paths left out of what they ask for.

    Raises ToolRefused for a word that names one, and for options that would show some whatever paths are asked for.
    """
    for word in words:
        named = (word, word.partition(":")[2], word.rpartition(":")[2])  # COMMIT:PATH, :0:PATH
        if any(posixpath.normpath(path) in denied for path in named if path):
            raise ToolRefused(f"git: {word} is denied by the user's policy")
        if word.startswith(_FOLLOW_RENAMES):
            raise ToolRefused(f"git {command} {word} isn't offered while the user's policy denies paths")
    if command == "blame":
        return [*words]
    return [*words, *(f":(top,exclude){pattern}" for pattern in denied.patterns)]


class _Repository(msgspec.Struct, frozen=True):
    """A repository to ask; `start` is how every question to it begins."""

    workspace: Path
    start: Sequence[str]
    environ: Mapping[str, str]

    async def run(self, command: Sandboxed, take: Callable[[bytes], None]) -> int:
        """The exit status; `take` gets the answer. Raises ToolRefused when it takes too long."""
        status = await run(command, self.workspace, seconds=_TIMEOUT_S, take=take)
        if status is None:
            raise ToolRefused(f"git took longer than {_TIMEOUT_S:g} s; ask for less, with -n or a path")
        return status

    async def require_commits(self, words: Sequence[str]) -> None:
        """Raises ToolRefused for content that is named by its hash: it could be that of a denied path."""
        for word in takewhile(lambda word: word != "--", words):
            kind = bytearray()
            if not word.startswith("-") and ":" not in word:
                await self.run(Sandboxed([*self.start, "cat-file", "-t", word], self.environ), kind.extend)
            if bytes(kind.strip()) in {b"blob", b"tree"}:
                raise ToolRefused(f"git: the user's policy denies some paths, so name {word} as COMMIT:PATH")

    async def harmless(self) -> list[str]:
        """The options that take away the programs which the repository names for its files."""
        answer = bytearray()
        listing = [*self.start, "config", "--null", "--get-regexp", _PROGRAM_SETTINGS]
        await self.run(Sandboxed(listing, self.environ), answer.extend)
        words: list[str] = []
        for setting in answer.decode(errors="surrogateescape").split("\0")[:-1]:
            name, _, value = setting.partition("\n")
            if "=" in name:  # it would end the name in an option
                raise ToolRefused(
                    f"the repository's git configuration names a program in a setting with an unusual name: {name!r}"
                )
            if name != "blame.ignorerevsfile":
                words += ["-c", f"{name}={'false' if name.endswith('.required') else ''}"]
            elif value.startswith(("~", "%")) or _is_outside(value, self.workspace):
                raise ToolRefused(f"git's setting blame.ignoreRevsFile leads out of the workspace: {value!r}")
        return words


def _is_outside(word: str, workspace: Path) -> bool:
    """Whether a path leads out of the workspace, also by a link."""
    place = os.path.normpath(workspace / word)
    within = Path(place).is_relative_to(workspace)
    return "\0" in word or not within or not Path(os.path.realpath(place)).is_relative_to(workspace.resolve())
