"""Answers about what changed: the repository's log, and what isn't committed."""

import re
import shlex

from denizen.models.offline.plan import Plan, Trouble, run
from denizen.models.offline.question import Question

COMMITS = 10
"""How many commits are shown unless a number is asked for."""

MOST = 100
"""How many are shown at most."""

_UNBORN = "does not have any commits yet"
"""What git says of a repository where nothing was committed."""
_NO_REPOSITORY = "not the root of a git repository"
_NO_COMMITS = "There are no commits here yet."


def changes(asked: Question, found: re.Match[str]) -> Plan:
    """The latest commits, of the whole repository or of one path; and what is changed but not committed."""
    path = asked.place(found)
    number = asked.count(found, usual=COMMITS, most=MOST)
    where = "" if path == "." else f" -- {shlex.quote(path)}"
    try:
        log = yield from run("git", args=f"log -n {number} --date=short '--format=%h %ad %an: %s'{where}")
        status = yield from run("git", args=f"status --short{where}")
    except Trouble as trouble:
        return _untold(str(trouble))
    what = "" if path == "." else f" of `{path}`"
    commits = _lines(log)
    if not commits:
        return f"There are no commits{what} yet." + _uncommitted(status)
    heading = f"The latest {len(commits)} commits{what}, newest first" if len(commits) > 1 else f"The only commit{what}"
    return f"{heading}:\n\n{_bullets(commits)}{_uncommitted(status)}"


def _untold(trouble: str) -> str:
    """Why there is nothing to tell."""
    if _NO_REPOSITORY in trouble:
        return f"I can only tell what changed from git, and this folder is {_NO_REPOSITORY}."
    return _NO_COMMITS if _UNBORN in trouble else f"I can only tell what changed from git. {trouble}"


def status(asked: Question, found: re.Match[str]) -> Plan:
    """What is changed but not committed."""
    try:
        told = yield from run("git", args="status --short --branch")
    except Trouble as trouble:
        return _untold(str(trouble))
    branch, *files = _lines(told) or [""]
    where = f" (branch {branch.removeprefix('## ').partition('...')[0]})" if branch.startswith("## ") else ""
    return f"Nothing is uncommitted{where}." if not files else f"Not committed yet{where}:\n\n{_block(files)}"


def _uncommitted(status: str) -> str:
    files = _lines(status)
    return f"\n\nNot committed yet:\n\n{_block(files)}" if files else "\n\nNothing is uncommitted."


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip() and line.strip() != "[nothing]"]


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _block(lines: list[str]) -> str:
    more = f"\n… and {len(lines) - 30} more" if len(lines) > 30 else ""
    return "```\n" + "\n".join(lines[:30]) + more + "\n```"
