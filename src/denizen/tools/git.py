"""`git`: what the repository tells, without changing it and without running anything that it brings along."""

import itertools
import shutil
import tempfile
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from denizen.config.settings import SandboxSettings
from denizen.errors import ToolRefused
from denizen.messages import Text, ToolResult
from denizen.ports import Sandboxed, ToolContext, Traits
from denizen.tools.files.autorun import foreign_git_data, git_folder
from denizen.tools.function import FunctionTool, tool
from denizen.tools.git_words import checked_words, is_outside, without_denied
from denizen.tools.programs.process import Kept, run
from denizen.tools.sandbox.environment import CommandEnvironment

_COMMANDS = {
    "status": ["--ignore-submodules=dirty"],
    "log": ["--no-ext-diff", "--no-textconv"],
    "diff": ["--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"],
    "show": ["--no-ext-diff", "--no-textconv"],
    "blame": ["--no-textconv"],
}
_SETTINGS = (
    *("core.fsmonitor=false", "core.hooksPath=/dev/null", "color.ui=never", "status.submoduleSummary=false"),
    *("diff.submodule=short", "log.showSignature=false", "log.diffMerges=separate"),
    *(f"gpg.{kind}program=false" for kind in ("", "openpgp.", "x509.", "ssh.")),
)
_OWN = r"^((filter|diff)\..*\.(clean|smudge|process|required|command|textconv)|blame\.ignorerevsfile)$"
"""Settings by which a repository names programs of its own, and a file that git quotes where it finds it wrong."""
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # nothing is fetched, so no program is asked to
    "GIT_NO_LAZY_FETCH": "1",
}
_PATIENCE = 60.0


def git_tool(environ: Mapping[str, str], *, most: int = 40_000) -> FunctionTool:
    """The tool that reads a workspace's repository; `most` bytes of what it says are kept."""
    environment = CommandEnvironment(SandboxSettings(), environ, {}).variables | _ENVIRONMENT

    @tool(traits=Traits.READS | Traits.REPEATABLE)
    async def git(args: str, turn: ToolContext) -> ToolResult:
        """Read the git repository: status, log, diff, show, blame.

        Args:
            args: As on a command line, `log -n 5 --stat -- src`.
        """
        command, words = checked_words(args, turn.workspace)
        kept = Kept(most)
        if turn.denied.patterns:
            words = without_denied(command, words, turn.denied)
        with _opened(turn.workspace, environment) as repository:
            harmless = await repository.harmless()
            if turn.denied.patterns:
                await repository.require_commits(words)
            status = await repository.ask([*harmless, command, *_COMMANDS[command], *words], kept.add)
        text = kept.text("ask for less, with -n, --stat or a path")
        ending = f"[exit code {status}]" if status else "" if text else "[nothing]"
        return ToolResult("", "", [Text(text + ending)], is_error=status != 0)

    return git


@dataclass(frozen=True, slots=True)
class _Repository:
    """A repository to ask; `start` is how every question to it begins."""

    workspace: Path
    start: Sequence[str]
    environ: Mapping[str, str]

    async def ask(self, words: Sequence[str], take: Callable[[bytes], None]) -> int:
        """The exit status; `take` gets the answer. Raises ToolRefused when it takes too long."""
        command = Sandboxed([*self.start, *words], self.environ)
        status = await run(command, self.workspace, seconds=_PATIENCE, take=take)
        if status is None:
            raise ToolRefused(f"git took longer than {_PATIENCE:g} s; ask for less, with -n or a path")
        return status

    async def require_commits(self, words: Sequence[str]) -> None:
        """Raises ToolRefused for content that is named by its hash: whether it is denied can't be told."""
        for word in itertools.takewhile(lambda word: word != "--", words):
            kind = bytearray()
            if not word.startswith("-") and ":" not in word:
                await self.ask(["cat-file", "-t", word], kind.extend)
            if bytes(kind.strip()) in {b"blob", b"tree"}:
                raise ToolRefused(f"git: the user's policy denies some paths, so name {word} as COMMIT:PATH")

    async def harmless(self) -> list[str]:
        """The options that take away the programs which the repository names for its files."""
        answer = bytearray()
        await self.ask(["config", "--null", "--get-regexp", _OWN], answer.extend)
        words: list[str] = []
        for setting in answer.decode(errors="surrogateescape").split("\0")[:-1]:
            name, _, value = setting.partition("\n")
            if "=" in name:  # it would end the name in an option
                raise ToolRefused(f"the repository's git configuration names a program in a strange way: {name!r}")
            if name != "blame.ignorerevsfile":
                words += ["-c", f"{name}={'false' if name.endswith('.required') else ''}"]
            elif value.startswith(("~", "%")) or is_outside(value, self.workspace):
                raise ToolRefused(f"git's setting blame.ignoreRevsFile leads out of the workspace: {value!r}")
        return words


@contextmanager
def _opened(workspace: Path, environ: Mapping[str, str]) -> Generator[_Repository]:
    """The workspace's repository, with a copy of its index: git writes into that what it learns about files."""
    folder = git_folder(workspace)
    if folder is None:
        raise ToolRefused(f"{workspace} is not the root of a git repository")
    if stray := foreign_git_data(folder, workspace):
        raise ToolRefused(f"{stray} leads out of the workspace, so git is not asked here")
    start = ["git", "--no-pager", "--no-optional-locks", f"--git-dir={folder}", f"--work-tree={workspace}"]
    start += [word for setting in _SETTINGS for word in ("-c", setting)]
    with tempfile.TemporaryDirectory(prefix="denizen-") as scratch:
        if (folder / "index").is_file():
            shutil.copy2(folder / "index", scratch)
        yield _Repository(workspace, start, {**environ, "GIT_INDEX_FILE": f"{scratch}/index"})
