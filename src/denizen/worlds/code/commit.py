"""Git and a task: the difference that goes with the task, and the commit of what the task changed."""

import os
import re
import shlex
import textwrap
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path, PurePath

from denizen.errors import ConfigError, DenizenError, ToolRefused
from denizen.messages import Text
from denizen.ports import Answer, Sandboxed, ToolContext
from denizen.tools.git import git_tool
from denizen.tools.programs.process import BoundedOutput, run
from denizen.trusted.programs import find_program, trusted_environ
from denizen.worlds.world import AgentHandle

HEADING = "## Commit"
REQUEST = (
    f"End your answer with a section {HEADING!r} that holds a message for the commit of your changes: a subject of at "
    "most 72 characters in the imperative, an empty line, then what changed and why, in a few lines."
)
MAX_SUBJECT_CHARS = 72
"""Characters of a subject at most."""
GIT_TIMEOUT_S = 300.0
MAX_DIFF_BYTES = 200_000
"""Bytes of a difference that go with a task."""
_MAX_LIST_BYTES = 10_000_000
"""Bytes of a list of paths."""
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")


async def difference_to(base: str, agent: AgentHandle) -> Text:
    """What differs from the commit `base`, uncommitted changes included; new files that git doesn't track by name.

    Nothing that the repository brings along is run for it. Raises ConfigError if git knows no such commit.
    """

    async def nobody(_: str) -> Answer:
        raise ToolRefused("nobody is asked here")

    turn = ToolContext(
        session_key="",
        call_id="diff",
        workspace=agent.workspace,
        clock=agent.record.clock,
        emit=lambda _: None,
        ask=nobody,
    )
    git = git_tool(agent.record.environ, most=MAX_DIFF_BYTES)
    try:
        answer = await git.run({"args": f"diff --end-of-options {shlex.quote(base)} --"}, turn)
        status = await git.run({"args": "status --porcelain --untracked-files=all"}, turn)
    except ToolRefused as why:
        raise ConfigError(f"--diff {base}: {why}.") from why
    if answer.is_error:
        raise ConfigError(f"--diff {base}: git says: {answer.text.partition('[exit code')[0].strip()}")
    new = [line for line in status.text.splitlines() if line.startswith("?? ")]
    untracked = "\n".join(["\nNot known to git yet:", *new]) if new else ""
    return Text(f'\n\n<diff base="{base}">\n{answer.text}{untracked}\n</diff>')


def message_of(task: str, reply: str) -> str:
    """The commit's message: the answer's section for it, else one made of the task and the answer."""
    _, text, _ = _split(reply)
    subject, _, body = text.partition("\n") if text else (task.strip().partition("\n")[0], "", reply.strip())
    short = textwrap.shorten(subject.strip() or "Changes by the agent", MAX_SUBJECT_CHARS, placeholder=" …")
    lines = [
        textwrap.fill(line, MAX_SUBJECT_CHARS) if len(line) > MAX_SUBJECT_CHARS else line
        for line in body.strip().splitlines()
    ]
    return "\n".join([short, "", *lines]).strip() + "\n"


def without_message(reply: str) -> str:
    """The answer for the person: without the commit's message, unless it says nothing else."""
    before, message, after = _split(reply)
    after = after.strip("\n")
    return f"{before.rstrip()}\n\n{after}".strip() or message


def _split(reply: str) -> tuple[str, str, str]:
    """An answer as the text before the commit's message, the message (empty: it has none), and the text after it.

    The message is the last section of that name, up to the next section; if that begins with a fenced block, the block.
    """
    lines = reply.splitlines(keepends=True)
    blocks: dict[int, int] = {}  # the first line of each fenced block, and the line after it
    end = 0
    for at, line in enumerate(lines):
        if at >= end and (fence := _FENCE.match(line)):
            closing = re.compile(rf"\s*{fence[1]}{fence[1][0]}*\s*$")
            end = next((n for n in range(at + 1, len(lines)) if closing.match(lines[n])), len(lines)) + 1
            blocks[at] = end
    headings = [
        at
        for at, line in enumerate(lines)
        if line.startswith("## ") and not any(first <= at < end for first, end in blocks.items())
    ]
    start = next((at for at in reversed(headings) if lines[at].rstrip() == HEADING), None)
    if start is None:
        return reply, "", ""
    first = next((at for at in range(start + 1, len(lines)) if lines[at].strip()), len(lines))
    if first in blocks:
        end = blocks[first]
        message = lines[first + 1 : end - 1]
    else:
        end = next((at for at in headings if at > start), len(lines))
        message = lines[first:end]
    return "".join(lines[:start]), "".join(message).strip(), "".join(lines[end:])


def in_other_repositories(workspace: Path, paths: Sequence[str]) -> Sequence[str]:
    """The paths that are in a repository within the project, a submodule: no commit of the project can hold them."""
    folders = {path: PurePath(path).parents[:-1] for path in paths}
    return [path for path in paths if any((workspace / folder / ".git").exists() for folder in folders[path])]


async def by_products(
    workspace: Path, paths: Sequence[str], edited: Collection[str], environ: Mapping[str, str]
) -> Sequence[str]:
    """The paths that no edit made and git doesn't track: what commands and checks left. Raises DenizenError."""
    made = [path for path in paths if path not in edited]
    listed = ("-c", "core.quotePath=false", "ls-files", "--", *made)
    tracked = set((await _git(workspace, environ, *listed, most=_MAX_LIST_BYTES)).splitlines()) if made else set[str]()
    return [path for path in made if path not in tracked]


def repository_of(workspace: Path) -> Path | None:
    """The folder of the repository that the workspace is in; None: it is in none."""
    return next((folder for folder in (workspace, *workspace.parents) if os.path.lexists(folder / ".git")), None)


async def check_committer(workspace: Path, environ: Mapping[str, str]) -> None:
    """Raise ConfigError where git doesn't know whose name to put under a commit."""
    try:
        await _git(workspace, environ, "var", "GIT_COMMITTER_IDENT")
    except DenizenError as why:
        raise ConfigError(
            "--commit: git doesn't know who you are. Set user.name and user.email: "
            'git config --global user.name "Your Name"; git config --global user.email you@example.com'
        ) from why


async def commit(
    workspace: Path, paths: Sequence[str], message: str, environ: Mapping[str, str], *, repository: Path
) -> str:
    """Commit these paths and nothing else, not even what the user has staged; returns the commit's short id,
    empty where all of it is committed already.

    The hooks and settings of `repository`, which the workspace was in before the task, apply: this is the user's
    commit. Raises DenizenError with git's message, and where the task would decide what git runs: it made a repository
    of its own, or changed the hooks.
    """
    if repository_of(workspace) != repository:
        raise DenizenError(f"{workspace} has left the repository {repository} since the task began.")
    hooks = Path(os.path.normpath(workspace / await _git(workspace, environ, "rev-parse", "--git-path", "hooks")))
    folder = hooks.parent if hooks.name == "_" else hooks  # husky's hooks run what is in the folder above
    if ran := next((path for path in paths if (workspace / path).is_relative_to(folder)), None):
        raise DenizenError(
            f"The task changed {ran}, which git runs on commit. Check it, and commit the changes yourself."
        )
    there = [path for path in paths if os.path.lexists(workspace / path)]
    if there:
        await _git(workspace, environ, "add", "--", *there)
    gone = [path for path in paths if path not in there and await _git(workspace, environ, "ls-files", "--", path)]
    if not there and not gone:
        raise DenizenError("All changed files were untracked and are deleted, so there is nothing to commit.")
    if not await _git(workspace, environ, "status", "--porcelain", "--", *there, *gone):
        return ""
    await _git(workspace, environ, "commit", "--quiet", "--only", "-m", message, "--", *there, *gone)
    return await _git(workspace, environ, "rev-parse", "--short", "HEAD")


async def _git(workspace: Path, environ: Mapping[str, str], *words: str, most: int = 4_000) -> str:
    kept = BoundedOutput(most)
    try:
        argv = [find_program("git", environ, workspace), "--literal-pathspecs", "--no-pager", *words]
        command = Sandboxed(argv, trusted_environ(environ, workspace))
        status = await run(command, workspace, seconds=GIT_TIMEOUT_S, take=kept.add)
    except (FileNotFoundError, ToolRefused) as why:
        raise DenizenError(f"git can't be run: {why}") from why
    text = kept.text("run it to see them").strip()
    if status != 0:
        raise DenizenError(f"git {words[0]} failed: {text or 'it took too long'}. The changes are kept, uncommitted.")
    return text
