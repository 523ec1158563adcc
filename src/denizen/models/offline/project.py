"""Answers about the project as a whole: its purpose, licence, authors, dependencies, history, and how it is tested."""

import re
import shlex
from collections import Counter
from collections.abc import Generator, Sequence
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Final

from denizen.messages import ToolResult
from denizen.models.offline.files import is_own
from denizen.models.offline.manifests import FILES, reader_of
from denizen.models.offline.plan import Plan, Trouble, Want, block, file_text, find_files, read_files, run
from denizen.models.offline.question import Question
from denizen.plural import counted

READ = 12
"""Files of a kind that are read, those nearest to the root first."""
NAMES = 50
"""Dependencies of a kind, or authors, that are named."""
COMMITS = 10
"""Commits that are shown unless a number is asked for."""
MOST_COMMITS = 100
COUNTED = 2000
"""Commits whose authors are counted."""
PARAGRAPHS = 3
"""Paragraphs of a README that sum it up."""

_LICENCES: Final = (
    ("the MIT licence", r"permission is hereby granted, free of charge, to any person"),
    ("the ISC licence", r"permission to use, copy, modify, and(?:/or)? distribute this software"),
    ("the Apache licence", r"apache license,?\s+version \d[\d.]*"),
    ("the GNU Affero General Public License", r"gnu affero general public license\s+version \d"),
    ("the GNU Lesser General Public License", r"gnu lesser general public license\s+version [\d.]+"),
    ("the GNU General Public License", r"gnu general public license\s+version \d"),
    ("the Mozilla Public License", r"mozilla public license,?\s+(?:version|v\.) \d[\d.]*"),
    ("a BSD licence of three clauses", r"redistribution and use in source and binary forms[\s\S]*neither the name"),
    ("a BSD licence of two clauses", r"redistribution and use in source and binary forms"),
    ("the Unlicense: the public domain", r"free and unencumbered software released into the public domain"),
    ("Creative Commons Zero: the public domain", r"cc0 1\.0 universal"),
    ("the Eclipse Public License", r"eclipse public license\s+-?\s*v(?:ersion)? \d[\d.]*"),
)
_WITH_VERSION: Final = ("Apache licence", "Public License")
_MANIFEST_LICENCE: Final = re.compile(
    r"""(?:^|[{,])\s*["']?licen[cs]e["']?\s*[=:]\s*(?:\{[^}\n]*?(?:text|file)["']?\s*=\s*)?["']?([^"'\n{},]+)|<license>\s*<name>([^<]+)""",
    re.MULTILINE,
)
_UNREAD_MANIFESTS: Final = "[not looked at, give it as `path`: "
"""The beginning of the remark of `package` with the manifests that it left out."""
_UNBORN = "does not have any commits yet"
"""What git says about a repository without commits."""
_NO_REPOSITORY = "not the root of a git repository"


def purpose(asked: Question, found: re.Match[str]) -> Plan:
    """A summary of the README: its title, its first paragraphs, its headings."""
    path, lines = yield from _nearest_file("{README,Readme,readme}{,.*}")
    if not path:
        return "What this project is for I can't tell: it has no README."
    text = re.sub(r"^(```|~~~)[\s\S]*?^\1.*$|<!--[\s\S]*?-->", "", "\n".join(lines), flags=re.MULTILINE)
    text = re.sub(r"^(.+)\n(?:=+|-{3,})$", r"# \1", text, flags=re.MULTILINE)  # headings that are underlined
    headings = [match.strip("# ") for match in re.findall(r"^#+ .+$", text, re.MULTILINE)]
    prose = [" ".join(each.split()) for each in re.split(r"\n\s*\n|^#.*$", text, flags=re.MULTILINE)]
    prose = [each for each in prose if re.match(r"[\w*_\"'`]", each) and re.search(r"\w \w", each)][:PARAGRAPHS]
    if not prose and not headings:
        return f"`{path}` says nothing that I could sum up."
    parts = [f"`{path}` says:", *(f"> {each}" for each in prose)]
    if len(headings) > 1:
        parts.append(f"Its headings: {'; '.join(headings[:NAMES])}.")
    return "\n\n".join(parts)


def licence(asked: Question, found: re.Match[str]) -> Plan:
    """The licence by the text of its file, else as a manifest names it."""
    path, lines = yield from _nearest_file("{LICEN[CS]E,licen[cs]e,Licen[cs]e,COPYING,UNLICENSE}{,[.-]*}")
    if path:
        text = " ".join("\n".join(lines).split()).lower()
        name = next((name for name, sign in _LICENCES if re.search(sign, text)), "")
        version = re.search(r"version (\d[\d.]*\d|\d)|v\. (\d[\d.]*)", text) if name.endswith(_WITH_VERSION) else None
        which = f"{name} {version[1] or version[2]}" if version else name
        first = next((line.strip() for line in lines if line.strip()), "")
        return (
            f"It is under {which}, by `{path}`."
            if name
            else f"I don't know the licence in `{path}`. It begins: {first}"
        )
    manifests = yield from _texts("{pyproject.toml,package.json,Cargo.toml,composer.json,setup.cfg,pom.xml,*.gemspec}")
    for path, text in manifests.items():
        if match := _MANIFEST_LICENCE.search(text):
            return f"It is under {(match[1] or match[2]).strip()}, as `{path}` says; there is no licence file."
    return "I find no licence here: no LICENSE or COPYING file, and no manifest that names one."


def authors(asked: Question, found: re.Match[str]) -> Plan:
    """Who wrote it, by the commits; else by a file of authors."""
    path = asked.place(found)
    what = f"`{path}`" if path != "." else "this project"
    where = f" -- {shlex.quote(path)}" if path != "." else ""
    try:
        log = _lines((yield from run("git", args=f"log -n {COUNTED} --format=%an{where}")))
    except Trouble as trouble:
        file, lines = yield from _nearest_file("{AUTHORS,CONTRIBUTORS,MAINTAINERS}{,.*}")
        return f"`{file}` says:\n\n{block(lines, NAMES)}" if file else _no_history(str(trouble))
    names = Counter(log).most_common()
    if not names:
        return f"I find no commits of {what}."
    rows = [f"{name}  {counted(count, 'commit')}" for name, count in names]
    latest = f"the latest {COUNTED:,} commits" if len(log) >= COUNTED else "the commits"
    return f"By {latest}, {what} was written by:\n\n{block(rows, NAMES)}"


def changes(asked: Question, found: re.Match[str]) -> Plan:
    """The latest commits, of the whole repository or of one path; and what isn't committed."""
    path = asked.place(found)
    number = asked.count(found, usual=COMMITS, most=MOST_COMMITS)
    where = "" if path == "." else f" -- {shlex.quote(path)}"
    try:
        log = yield from run("git", args=f"log -n {number} --date=short '--format=%h %ad %an: %s'{where}")
        files = _lines((yield from run("git", args=f"status --short{where}")))
    except Trouble as trouble:
        return _no_history(str(trouble))
    what = "" if path == "." else f" of `{path}`"
    commits = _lines(log)
    uncommitted = f"Not committed yet:\n\n{block(files, 30)}" if files else "Nothing is uncommitted."
    if not commits:
        return f"There are no commits{what} yet.\n\n{uncommitted}"
    heading = f"The latest {len(commits)} commits{what}, newest first" if len(commits) > 1 else f"The only commit{what}"
    bullets = "\n".join(f"- {line}" for line in commits)
    return f"{heading}:\n\n{bullets}\n\n{uncommitted}"


def status(asked: Question, found: re.Match[str]) -> Plan:
    """What isn't committed."""
    try:
        branch, *files = _lines((yield from run("git", args="status --short --branch"))) or [""]
    except Trouble as trouble:
        return _no_history(str(trouble))
    where = f" (branch {branch.removeprefix('## ').partition('...')[0]})" if branch.startswith("## ") else ""
    return f"Nothing is uncommitted{where}." if not files else f"Not committed yet{where}:\n\n{block(files, 30)}"


def _no_history(trouble: str) -> str:
    if _NO_REPOSITORY in trouble:
        return f"I can only tell that from git, and this folder is {_NO_REPOSITORY}."
    return "There are no commits here yet." if _UNBORN in trouble else f"I can only tell that from git. {trouble}"


def dependencies(asked: Question, found: re.Match[str]) -> Plan:
    """What the manifests nearest to the root declare; with `package`, also which versions are locked."""
    try:
        rows = (yield from run("package", action="list")).split("\n")
    except Trouble:
        return (yield from _declarations())
    table = "\n".join(row for row in rows if not row.startswith("["))
    unread = (row[len(_UNREAD_MANIFESTS) : -1] for row in rows if row.startswith(_UNREAD_MANIFESTS))
    return f"As manifests and lock files tell:\n\n```\n{table}\n```" + "".join(
        f"\n\nI didn't read {x}." for x in unread
    )


def _declarations() -> Plan:
    files = yield from find_files(FILES)
    paths = sorted(filter(reader_of, filter(is_own, files.files)), key=lambda path: (path.count("/"), path))
    if not paths:
        return "I find no file here that declares dependencies, such as pyproject.toml, package.json or Cargo.toml."
    chosen = ([path for path in paths if "/" not in path] or paths)[:READ]
    results = yield from read_files(chosen)
    parts = [_declared(path, result) for path, result in zip(chosen, results, strict=True)]
    if more := paths[len(chosen) :]:
        where = " below" if all("/" in path for path in more) else ""
        parts.append(f"I didn't read {counted(len(more), 'other manifest')}{where}: {', '.join(more[:NAMES])}.")
    return "\n\n".join(parts)


def _declared(path: str, result: ToolResult) -> str:
    """What one manifest declares, or why it can't be read."""
    read, file = reader_of(path), file_text(result.text)
    if result.is_error or not read:
        return f"`{path}` can't be read: {result.text.strip()}"
    if not file.complete:
        return f"`{path}` is too long for me to read as a whole."
    try:
        groups = {purpose: names for purpose, names in read(file.text).items() if names}
    except (ValueError, RecursionError) as error:
        return f"`{path}` can't be understood: {error}."
    rows = [f"`{path}` declares:" if groups else f"`{path}` declares no dependencies."]
    for purpose_, names in groups.items():
        kind = f"{counted(len(names), 'dependency')}{f' ({purpose_})' if purpose_ else ''}"
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        rows.append(f"- {kind}: {', '.join(f'`{name}`' for name in names[:NAMES])}{more}")
    return "\n".join(rows)


_TEST_COMMANDS: Final = (
    ("[Mm]akefile", r"^test\s*:(?!=)", "make test"),
    ("[Mm]akefile", r"\A(?![\s\S]*^test\s*:)[\s\S]*^check\s*:(?!=)", "make check"),
    ("justfile", r"^test\b.*:", "just test"),
    ("tox.ini", "", "tox"),
    ("noxfile.py", "", "nox"),
    ("pyproject.toml", r"pytest", "python -m pytest"),
    ("pytest.ini", "", "python -m pytest"),
    ("setup.cfg", r"^\[tool:pytest\]", "python -m pytest"),
    ("manage.py", r"django", "python manage.py test"),
    ("package.json", r'"test"\s*:\s*"(?!.*no test specified)', "npm test"),
    ("Cargo.toml", "", "cargo test"),
    ("go.mod", "", "go test ./..."),
    ("pom.xml", "", "mvn test"),
    ("build.gradle*", "", "gradle test"),
    ("*.csproj", "", "dotnet test"),
    ("Package.swift", "", "swift test"),
    ("mix.exs", "", "mix test"),
    ("Gemfile", r"\brspec", "bundle exec rspec"),
    ("composer.json", r'"test"\s*:', "composer test"),
    ("pubspec.yaml", "", "dart test"),
)
"""Files, what must be in them (a regular expression), and the command that runs the tests then."""


def test_command(asked: Question, found: re.Match[str]) -> Plan:
    """The commands that run the tests, and which file says so."""
    texts = yield from _texts(f"{{{','.join(dict.fromkeys(name for name, _, _ in _TEST_COMMANDS))}}}")
    commands: dict[str, str] = {}
    for name, sign, command in _TEST_COMMANDS:
        for path, text in texts.items():
            if fnmatch(PurePosixPath(path).name, name) and re.search(sign, text, re.MULTILINE):
                commands.setdefault(command, path)
    if commands:
        rows = "\n".join(f"- `{command}` (from `{path}`)" for command, path in commands.items())
        return f"The tests are run by:\n\n{rows}"
    files = yield from find_files("{test_*.py,*_test.py}")
    if any(map(is_own, files.files)):
        return "The tests are run by `python -m pytest`, going by the names of their files."
    return "I find nothing here that says how tests are run, such as a Makefile, pyproject.toml or package.json."


def not_run(asked: Question, found: re.Match[str]) -> Plan:
    """That it runs nothing, and how they are run."""
    return "I only look, and run nothing. " + (yield from test_command(asked, found))


def _texts(pattern: str) -> Generator[Sequence[Want], Sequence[ToolResult], dict[str, str]]:
    """The texts of the project's files that match, of those at the root if there are some."""
    paths = [path for path in (yield from find_files(pattern)).files if is_own(path)]
    paths = sorted([path for path in paths if "/" not in path] or paths)[:READ]
    results = (yield from read_files(paths)) if paths else []
    return {path: file_text(result.text).text for path, result in zip(paths, results, strict=True)}


def _nearest_file(pattern: str) -> Generator[Sequence[Want], Sequence[ToolResult], tuple[str, Sequence[str]]]:
    """The path of the file that matches nearest to the root, and its lines; empty if there is none."""
    paths = [path for path in (yield from find_files(pattern)).files if is_own(path)]
    if not paths:
        return "", []
    path = min(paths, key=lambda path: (path.count("/"), len(path), path))
    [result] = yield from read_files([path])
    return path, file_text(result.text).lines


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip() and line.strip() != "[nothing]"]
