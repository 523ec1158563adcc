"""Answers about the project as a whole: its languages, its dependencies."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from denizen.messages import ToolResult
from denizen.models.offline.languages import Language, languages_of
from denizen.models.offline.manifests import Declared, reader_of
from denizen.models.offline.outputs import find_files, read_files, shown
from denizen.models.offline.plan import Plan, Trouble, listed, run
from denizen.models.offline.question import Question
from denizen.plural import counted

MANIFESTS = 12
"""How many manifests are read, those nearest to the workspace's root first."""

FOLDERS = 3
"""How many folders are named that are left out."""

NAMES = 50
"""How many dependencies of a kind are named."""

_NOT_OURS: Final = re.compile(
    r"(?:.*?/)??(?:node_modules|bower_components|vendor|third_party|site-packages|\.?venv"
    r"|(?:test|__)?_?fixtures(?:__)?|test[-_]?data|tests?/(?:.*?/)??data)(?=/)"
)
"""The way to a folder of what others wrote, or of what tests read."""

_OTHERS: Final = "[not looked at, give it as `path`: "
"""How `package` begins to name the manifests that it leaves out."""

_MANIFEST_NAMES = (
    "{pyproject.toml,setup.cfg,setup.py,Pipfile,environment.yml,requirements*.txt,requirements*.in,package.json,Cargo.toml,go.mod,"
    "composer.json,Gemfile,*.gemspec,pom.xml,build.gradle,build.gradle.kts,mix.exs,Package.swift,pubspec.yaml,*.{cs,fs,vb}proj}"
)


def languages(asked: Question, found: re.Match[str]) -> Plan:
    """The languages by number of files: the main one, the others, and what else there is."""
    listing = yield from find_files()
    own = [path for path in listing.files if is_own(path)]
    counts = sorted(languages_of(own).items(), key=lambda each: (-each[1], each[0].name))
    source = [(language, count) for language, count in counts if language.source]
    other = [(language, count) for language, count in counts if not language.source]
    end = _left_out(listing.files) + listing.note
    if not own:
        return f"There are no files here.{end}"
    if not source:
        return f"I find no source code here, only {_shares(other) or 'nothing that I know'}.{end}"
    text = _said(found.groupdict().get("language") or "", source) + _written(source)
    return text + (f" Besides, there is {_shares(other)}." if other else "") + end


def _said(name: str, source: Sequence[tuple[Language, int]]) -> str:
    """The answer to whether it is written in a language; empty where that wasn't asked."""
    counts = {language.name.lower(): count for language, count in source}
    if not name:
        return ""
    count = counts.get(name.lower(), 0)
    return "Yes. " if count == source[0][1] else "In part. " if count else "No. "


def _written(source: Sequence[tuple[Language, int]]) -> str:
    """In what, and how much of it."""
    total = sum(count for _, count in source)
    most = source[0][1]
    main = [language.name for language, count in source if count == most]
    others = source[len(main) :]
    share = (
        f"{most:,} of its {total:,} source files" if len(source) > 1 else f"all of its {counted(total, 'source file')}"
    )
    text = f"This project is {'mainly ' if others else ''}written in {listed(main)}: {share}"
    text += " each." if len(main) > 1 else "."
    return text + (f" The others are {_shares(others)}." if others else "")


def is_own(path: str) -> bool:
    """Whether a file is the project's, not something it stands on or tests itself with."""
    return not _NOT_OURS.match(path)


def _left_out(files: Sequence[str]) -> str:
    """How many files aren't counted, and where they are."""
    folders = Counter(found[0] for found in map(_NOT_OURS.match, files) if found)
    if not folders:
        return ""
    names = [f"`{folder}`" for folder, _ in folders.most_common(FOLDERS)]
    where = listed([*names, "others"] if len(folders) > FOLDERS else names)
    return f" Not counted: {counted(folders.total(), 'file')} of test data or by others, in {where}."


def _shares(counts: Sequence[tuple[Language, int]]) -> str:
    return listed([f"{language.name} ({count:,})" for language, count in counts])


def dependencies(asked: Question, found: re.Match[str]) -> Plan:
    """What the manifests at the root declare, each by itself; those below where there are none.

    With `package`, also which versions are locked.
    """
    try:
        rows = (yield from run("package", action="list")).split("\n")
    except Trouble:
        return (yield from _declarations())
    told = "\n".join(row for row in rows if not row.startswith("["))
    others = "".join(f"\n\nI didn't read {row[len(_OTHERS) : -1]}." for row in rows if row.startswith(_OTHERS))
    return f"As manifests and lock files tell:\n\n```\n{told}\n```{others}"


def _declarations() -> Plan:
    """What manifests declare, as far as they can be read."""
    listing = yield from find_files(_MANIFEST_NAMES)
    paths = sorted(filter(reader_of, filter(is_own, listing.files)), key=lambda path: (path.count("/"), path))
    if not paths:
        return "I find no file here that declares dependencies, such as pyproject.toml, package.json or Cargo.toml."
    chosen = ([path for path in paths if "/" not in path] or paths)[:MANIFESTS]
    results = yield from read_files(chosen)
    parts = [_declared(path, result) for path, result in zip(chosen, results, strict=True)]
    if more := paths[len(chosen) :]:
        where = " below" if all("/" in path for path in more) else ""
        parts.append(f"I didn't read {counted(len(more), 'other manifest')}{where}: {', '.join(more[:NAMES])}.")
    return "\n\n".join(parts)


def _declared(path: str, result: ToolResult) -> str:
    """What one manifest says, or why that can't be told."""
    read = reader_of(path)
    file = shown(result.text)
    if result.is_error or not read:
        return f"`{path}` can't be read: {result.text.strip()}"
    if not file.complete:
        return f"`{path}` is too long for me to read as a whole."
    try:
        groups = {what: names for what, names in read(file.text).items() if names}
    except (ValueError, RecursionError) as error:
        return f"`{path}` can't be understood: {error}."
    if not groups:
        return f"`{path}` declares no dependencies."
    return f"`{path}` declares:\n" + "\n".join(_groups(groups))


def _groups(groups: Declared) -> Iterator[str]:
    for what, names in groups.items():
        kind = f"{counted(len(names), 'dependency')}{f' ({what})' if what else ''}"
        more = f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
        yield f"- {kind}: {', '.join(f'`{name}`' for name in names[:NAMES])}{more}"
