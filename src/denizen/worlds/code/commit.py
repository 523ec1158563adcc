"""One commit of what a task changed, with a message that says what and why."""

import os
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
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
_MOST_LISTED = 10_000_000
"""Bytes of a list of paths."""
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")


def message_of(task: str, reply: str) -> str:
    """The commit's message: what the answer says it should be, else one made of the task and the answer."""
    text = _written(reply)
    subject, _, body = text.partition("\n") if text else (task.strip().partition("\n")[0], "", reply.strip())
    short = textwrap.shorten(subject.strip() or "Changes by the agent", SUBJECT, placeholder=" …")
    lines = [textwrap.fill(line, SUBJECT) if len(line) > SUBJECT else line for line in body.strip().splitlines()]
    return "\n".join([short, "", *lines]).strip() + "\n"


def without_message(reply: str) -> str:
    """The answer for the person: without what is taken for the commit's message, unless it says nothing else."""
    section = _section(reply)
    parts = (section.before.rstrip(), section.after.strip("\n")) if section else (reply,)
    return "\n\n".join(parts).strip() or _written(reply)


def in_other_repositories(workspace: Path, paths: Sequence[str]) -> Sequence[str]:
    """The paths that lie in a repository within the project, a submodule: no commit of the project can hold them."""
    return [path for path in paths if any((workspace / folder / ".git").exists() for folder in _folders(path))]


async def by_products(
    workspace: Path, paths: Sequence[str], edited: Collection[str], environ: Mapping[str, str]
) -> Sequence[str]:
    """The paths that no edit made and git doesn't track: what commands and checks left. Raises DenizenError."""
    made = [path for path in paths if path not in edited]
    listed = ("-c", "core.quotePath=false", "ls-files", "--", *made)
    tracked = set((await _git(workspace, environ, *listed, most=_MOST_LISTED)).splitlines()) if made else set[str]()
    return [path for path in made if path not in tracked]


def repository_of(workspace: Path) -> Path | None:
    """The folder of the repository that the workspace is in; None: it is in none."""
    return next((folder for folder in (workspace, *workspace.parents) if os.path.lexists(folder / ".git")), None)


async def commit(
    workspace: Path, paths: Sequence[str], message: str, environ: Mapping[str, str], *, repository: Path
) -> str:
    """Commit these paths and nothing else, what the user has staged included; returns the commit's short id,
    empty where all of it is committed already.

    The hooks and settings of `repository`, which the workspace was in before the task, hold, as this is the user's
    commit. Raises DenizenError with what git says, and where the task would decide what git runs: it made a repository
    of its own, or changed the hooks.
    """
    if repository_of(workspace) != repository:
        raise DenizenError(f"Since the task began, {workspace} is no longer in the repository {repository}.")
    await _require_own_hooks(workspace, paths, environ)
    there = [path for path in paths if os.path.lexists(workspace / path)]
    if there:
        await _git(workspace, environ, "add", "--", *there)
    gone = [path for path in paths if path not in there and await _git(workspace, environ, "ls-files", "--", path)]
    if not there and not gone:
        raise DenizenError("What was changed is deleted, and git never knew of it: there is nothing to commit.")
    if not await _git(workspace, environ, "status", "--porcelain", "--", *there, *gone):
        return ""
    await _git(workspace, environ, "commit", "--quiet", "--only", "-m", message, "--", *there, *gone)
    return await _git(workspace, environ, "rev-parse", "--short", "HEAD")


@dataclass(frozen=True, slots=True)
class _Section:
    """The part of an answer that is the commit's message, and what stands around it."""

    before: str
    message: str
    after: str


def _section(reply: str) -> _Section | None:
    """The section that is the commit's message: the last of that name, up to the next; of one that begins with a block
    in fences, the block.
    """
    lines = reply.splitlines(keepends=True)
    blocks = _blocks(lines)
    quoted = {at for first, (end, _) in blocks.items() for at in range(first, end)}
    headings = [at for at, line in enumerate(lines) if line.startswith("## ") and at not in quoted]
    start = next((at for at in reversed(headings) if lines[at].rstrip() == HEADING), None)
    if start is None:
        return None
    first = next((at for at in range(start + 1, len(lines)) if lines[at].strip()), len(lines))
    end = next((at for at in headings if at > start), len(lines))
    end, message = blocks.get(first, (end, "".join(lines[first:end])))
    return _Section("".join(lines[:start]), message.strip(), "".join(lines[end:]))


def _blocks(lines: Sequence[str]) -> Mapping[int, tuple[int, str]]:
    """The blocks in fences: where each begins, the line behind it, and what is in it."""
    found: dict[int, tuple[int, str]] = {}
    end = 0
    for at, line in enumerate(lines):
        if at >= end and (mark := _FENCE.match(line)):
            last = next((n for n in range(at + 1, len(lines)) if _closes(mark[1], lines[n])), len(lines))
            end = last + 1
            found[at] = (end, "".join(lines[at + 1 : last]))
    return found


def _closes(mark: str, line: str) -> bool:
    text = line.strip()
    return len(text) >= len(mark) and not text.strip(mark[0])


def _written(reply: str) -> str:
    """What the answer says that the message should be; empty where it doesn't."""
    section = _section(reply)
    return section.message if section else ""


async def _require_own_hooks(workspace: Path, paths: Sequence[str], environ: Mapping[str, str]) -> None:
    """Raise DenizenError where the commit would run hooks, or what hooks of husky run, that are among the paths."""
    hooks = Path(os.path.normpath(workspace / await _git(workspace, environ, "rev-parse", "--git-path", "hooks")))
    folder = hooks.parent if hooks.name == "_" else hooks
    if changed := next((path for path in paths if (workspace / path).is_relative_to(folder)), None):
        raise DenizenError(f"The task changed {changed}, which a commit runs: look at it, and commit it yourself.")


def _folders(path: str) -> Sequence[PurePath]:
    """The folders that a path leads through."""
    return PurePath(path).parents[:-1]


async def _git(workspace: Path, environ: Mapping[str, str], *words: str, most: int = 4_000) -> str:
    kept = Kept(most)
    argv = ["git", "--literal-pathspecs", "--no-pager", *words]
    try:
        status = await run(Sandboxed(argv, environ), workspace, seconds=SECONDS, take=kept.add)
    except ToolRefused as why:
        raise DenizenError(f"git can't be run: {why}") from why
    text = kept.text("run it to see them").strip()
    if status != 0:
        raise DenizenError(f"git {words[0]} failed: {text or 'it took too long'}. The changes are there, uncommitted.")
    return text
