"""Answers about the project as a whole: its purpose, licence, authors, dependencies, history, and how it is tested."""

import re
import shlex
from collections import Counter
from collections.abc import Generator, Sequence
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Final

from denizen.messages import ToolResult
from denizen.models.offline.files import beginning, is_own
from denizen.models.offline.plan import Plan, Rows, Trouble, Want, block, file_text, find_files, read_files, run
from denizen.models.offline.question import Question
from denizen.models.offline.rules import rules
from denizen.text.plural import counted

MAX_FILES: Final = 12
"""Files of a kind that are read, those nearest to the root first."""
MAX_AUTHORS: Final = 50
DEFAULT_COMMITS, MAX_COMMITS, MAX_COUNTED_COMMITS = 10, 100, 2000
MAX_PARAGRAPHS: Final = 3
"""Paragraphs of a README that sum it up."""
MAX_LICENCE_LINES, MAX_LICENCE_CHARS = 5, 120
"""Lines of a licence that are shown; characters of a manifest's line about it."""
MAX_MANIFEST_LINES: Final = 100


def purpose(asked: Question, found: re.Match[str]) -> Plan:
    """The first paragraphs of the README."""
    readme = yield from _texts("readme")
    if not readme:
        return "What this project is for I can't tell: it has no README."
    path, text = min(readme.items())
    text = re.sub(r"^(```|~~~)[\s\S]*?^\1.*$|<!--[\s\S]*?-->|^.+\n(?:=+|-{3,})$", "", text, flags=re.MULTILINE)
    prose = [" ".join(each.split()) for each in re.split(r"\n\s*\n|^#.*$", text, flags=re.MULTILINE)]
    prose = [each for each in prose if re.match(r"[\w*_\"'`]", each) and re.search(r"\w \w", each)]
    if not prose:
        return f"`{path}` says nothing that I could sum up."
    return "\n\n".join([f"`{path}` says:", *(f"> {each}" for each in prose[:MAX_PARAGRAPHS])])


def licence(asked: Question, found: re.Match[str]) -> Plan:
    """The beginning of the licence's file, and the lines of manifests that name one."""
    files = yield from _texts("licence")
    parts = [f"`{path}` begins:\n\n{block(text.splitlines()[:MAX_LICENCE_LINES])}" for path, text in files.items()]
    manifests = yield from _texts("licensed")
    rows = [(path, line.strip()) for path, text in manifests.items() for line in text.splitlines()]
    if named := [f"{path}: {row[:MAX_LICENCE_CHARS]}" for path, row in rows if re.search(r"(?i)licen[cs]e", row)]:
        parts.append(f"Manifests say:\n\n{block(named)}")
    return "\n\n".join(parts) or "I find no licence here: no LICENSE or COPYING file, and no manifest that names one."


def authors(asked: Question, found: re.Match[str]) -> Plan:
    """The authors, by the commits."""
    path = asked.place(found)
    what = f"`{path}`" if path != "." else "this project"
    log = yield from _git(f"log -n {MAX_COUNTED_COMMITS} --format=%an", path)
    if not log:
        return f"I find no commits of {what}."
    rows = [f"{name}  {counted(count, 'commit')}" for name, count in Counter(log).most_common()]
    latest = f"the latest {len(log):,} commits" if len(log) >= MAX_COUNTED_COMMITS else "the commits"
    return f"By {latest}, {what} was written by:\n\n{block(rows, MAX_AUTHORS)}"


def changes(asked: Question, found: re.Match[str]) -> Plan:
    """The latest commits, of the whole repository or of one path; and what isn't committed."""
    path, number = asked.place(found), asked.count(found, DEFAULT_COMMITS, MAX_COMMITS)
    commits = yield from _git(f"log -n {number} --date=short '--format=- %h %ad %an: %s'", path)
    what = "" if path == "." else f" of `{path}`"
    latest = [f"The latest commits{what}, newest first:\n", *commits] if commits else [f"No commits{what} yet."]
    return "\n".join([*latest, "", (yield from status(asked, found))])


def status(asked: Question, found: re.Match[str]) -> Plan:
    """What isn't committed, of one path if it was asked for."""
    branch, *files = yield from _git("status --short --branch", asked.place(found))
    where = f" (branch {branch.removeprefix('## ').partition('...')[0]})"
    return f"Not committed yet{where}:\n\n{block(files, 30)}" if files else f"Nothing is uncommitted{where}."


def _git(args: str, path: str) -> Generator[Sequence[Want], Sequence[ToolResult], list[str]]:
    """The lines of git's answer about a path."""
    try:
        text = yield from run("git", args=args if path == "." else f"{args} -- {shlex.quote(path)}")
    except Trouble as trouble:
        if "does not have any commits yet" in str(trouble):
            raise Trouble("There are no commits here yet.") from trouble
        why = "this folder isn't a repository's root." if "not the root of a git" in str(trouble) else str(trouble)
        raise Trouble(f"I can only tell that from git, and {why}") from trouble
    return [line.rstrip() for line in text.splitlines() if line.strip() and line != "[nothing]"]


def dependencies(asked: Question, found: re.Match[str]) -> Plan:
    """What the manifests nearest to the root declare, as `package` reads them; without it, the manifests themselves."""
    try:
        listed = yield from run("package", action="list")
        return f"As manifests and lock files tell:\n\n{block(listed.splitlines(), MAX_MANIFEST_LINES)}"
    except Trouble:
        manifests = yield from _nearest(rules().files["dependencies"])
    if not manifests.lines:
        return "I find no file here that declares dependencies, such as pyproject.toml, package.json or Cargo.toml."
    results = yield from read_files(manifests.lines)
    parts = [beginning(path, result, MAX_MANIFEST_LINES) for path, result in zip(manifests.lines, results, strict=True)]
    return "\n\n".join(parts if manifests.complete else [*parts, "There are other manifests, which I didn't read."])


def test_command(asked: Question, found: re.Match[str]) -> Plan:
    """The commands that run the tests, and which file says so."""
    texts = yield from _texts("test_commands")
    rows = [
        f"- `{command}` (from `{path}`)"
        for command, (name, sign) in rules().test_commands.items()
        for path, text in texts.items()
        if fnmatch(PurePosixPath(path).name, name) and re.search(sign, text, re.MULTILINE)
    ]
    if not rows:
        return "I find nothing here that says how tests are run, such as a Makefile, pyproject.toml or package.json."
    return "\n".join(["The tests are run by:\n", *rows])


def not_run(asked: Question, found: re.Match[str]) -> Plan:
    """Decline to run the tests, and say how they are run."""
    return "I only look, and run nothing. " + (yield from test_command(asked, found))


def _texts(kind: str) -> Generator[Sequence[Want], Sequence[ToolResult], dict[str, str]]:
    """The texts of the project's files of a kind, of those nearest to the root."""
    paths = (yield from _nearest(rules().files[kind])).lines
    results = (yield from read_files(paths)) if paths else []
    return {path: "\n".join(file_text(result.text).lines) for path, result in zip(paths, results, strict=True)}


def _nearest(pattern: str) -> Generator[Sequence[Want], Sequence[ToolResult], Rows]:
    """The project's files that match and are nearest to the root."""
    paths = sorted(filter(is_own, (yield from find_files(pattern)).lines), key=lambda path: (path.count("/"), path))
    nearest = [path for path in paths if path.count("/") == paths[0].count("/")][:MAX_FILES]
    return Rows(nearest, len(nearest) == len(paths))
