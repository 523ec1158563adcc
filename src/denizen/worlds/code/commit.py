"""One commit of what a task changed, with a message that says what and why."""

import os
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from denizen.errors import DenizenError, ToolRefused
from denizen.ports import Sandboxed
from denizen.tools.programs.process import Kept, run

HEADING = "## Commit"
REQUEST = (
    f"End your answer with a section {HEADING!r} that holds a message for the commit of your changes: a subject of at "
    "most 72 characters in the imperative, an empty line, then what changed and why, in a few lines."
)
SUBJECT = 72
"""Characters of a subject at most."""
SECONDS = 300.0
_SECTION = re.compile(rf"^{HEADING}\s*$\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)


def message_of(task: str, reply: str) -> str:
    """The commit's message: what the answer says it should be, else one made of the task and the answer."""
    text = _written(reply)
    subject, _, body = text.partition("\n") if text else (task.strip().partition("\n")[0], "", reply.strip())
    short = textwrap.shorten(subject.strip() or "Changes by the agent", SUBJECT, placeholder=" …")
    lines = [textwrap.fill(line, SUBJECT) if len(line) > SUBJECT else line for line in body.strip().splitlines()]
    return "\n".join([short, "", *lines]).strip() + "\n"


def without_message(reply: str) -> str:
    """The answer for the person: without the section that is the commit's message, unless it says nothing else."""
    section = _section(reply)
    rest = reply[: section.start()].rstrip() + "\n\n" + reply[section.end() :] if section else reply
    return rest.strip() or _written(reply)


def in_other_repositories(workspace: Path, paths: Sequence[str]) -> Sequence[str]:
    """The paths that lie in a repository within the project, a submodule: no commit of the project can hold them."""
    return [path for path in paths if any((workspace / folder / ".git").exists() for folder in _folders(path))]


async def commit(workspace: Path, paths: Sequence[str], message: str, environ: Mapping[str, str]) -> str:
    """Commit these paths and nothing else, what the user has staged included; returns the commit's short id.

    The repository's own hooks and settings hold, as this is the user's commit. Raises DenizenError with what git says.
    """
    there = [path for path in paths if os.path.lexists(workspace / path)]
    if there:
        await _git(workspace, environ, "add", "--", *there)
    gone = [path for path in paths if path not in there and await _git(workspace, environ, "ls-files", "--", path)]
    if not there and not gone:
        raise DenizenError("What was changed is deleted, and git never knew of it: there is nothing to commit.")
    await _git(workspace, environ, "commit", "--quiet", "--only", "-m", message, "--", *there, *gone)
    return await _git(workspace, environ, "rev-parse", "--short", "HEAD")


def _section(reply: str) -> re.Match[str] | None:
    """The section that is the commit's message: the last of that name."""
    return next(iter([*_SECTION.finditer(reply)][-1:]), None)


def _written(reply: str) -> str:
    """What the answer says that the message should be; empty where it doesn't."""
    section = _section(reply)
    written = section[1].strip() if section else ""
    fence = _FENCE.match(written)
    return (fence[1] if fence else written).strip()


def _folders(path: str) -> Sequence[PurePath]:
    """The folders that a path leads through."""
    return PurePath(path).parents[:-1]


async def _git(workspace: Path, environ: Mapping[str, str], *words: str) -> str:
    kept = Kept(4_000)
    argv = ["git", "--literal-pathspecs", "--no-pager", *words]
    try:
        status = await run(Sandboxed(argv, environ), workspace, seconds=SECONDS, take=kept.add)
    except ToolRefused as why:
        raise DenizenError(f"git can't be run: {why}") from why
    text = kept.text("run it to see them").strip()
    if status != 0:
        raise DenizenError(f"git {words[0]} failed: {text or 'it took too long'}. The changes are there, uncommitted.")
    return text
