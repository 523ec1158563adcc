"""Answers about files: which there are, where one is, what is in it, and their languages."""

import functools
import json
import re
from collections import Counter
from collections.abc import Generator, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from posixpath import commonpath, dirname
from typing import Final, NamedTuple

from denizen.documents import text_in
from denizen.messages import Document, ToolResult
from denizen.models.offline import code
from denizen.models.offline.plan import (
    Listing,
    Plan,
    Trouble,
    Want,
    block,
    failed,
    file_text,
    find_files,
    listed,
    read_files,
    run,
)
from denizen.models.offline.question import Question
from denizen.plural import counted

NAMED = 60
"""Files that are named; of more, their number in each folder is."""
LINES = 200
"""Lines of a file that are shown."""
CHARACTERS = 12_000
"""Characters of a file that are shown."""
FOLDERS = 3
"""Folders that are named which don't count."""
LARGEST = 5
"""Files that are shown by size unless a number is asked for."""

_TESTS: Final = (
    "{test_*.*,*_test.*,*.test.*,*.spec.*,*_spec.*,*Test.java,*Tests.java,*Test.kt,*Tests.cs,*Test.php,*Tests.swift,"
    "**/tests/*.rs}"
)
_FOREIGN: Final = re.compile(
    r"(?:.*?/)??(?:node_modules|bower_components|vendor|third_party|site-packages|\.?venv"
    r"|(?:test|__)?_?fixtures(?:__)?|test[-_]?data|tests?/(?:.*?/)??data)(?=/)"
)
"""The path to a folder of other people's files, or of test data."""
_IS_FOLDER = "; list it with ls"
_MISSING = " doesn't exist"
"""What `read` says about a folder, and about a missing file."""
_NOT_A_FILE = " is not a file; "
"""What `view` says about both."""


class Language(NamedTuple):
    """A language, and whether programs are written in it."""

    name: str
    source: bool


def is_own(path: str) -> bool:
    """Whether a file belongs to the project: it's neither other people's nor test data."""
    return not _FOREIGN.match(path)


def listing(asked: Question, found: re.Match[str]) -> Plan:
    """The files, by name or by folder; those of one language, or with a word in their names."""
    word = found.groupdict().get("language") or ""
    suffixes = [key for key, known in _languages().items() if key[0] == "." and known.name.lower() == word.lower()]
    pattern = f"*{word}*" if word else "*"
    if suffixes:
        pattern = f"*{{{','.join(suffixes)}}}" if len(suffixes) > 1 else f"*{suffixes[0]}"
    files = yield from find_files(pattern, asked.place(found))
    return _summary(files, f"{word} file" if suffixes else "file", asked.place(found), "" if suffixes else word)


def tests(asked: Question, found: re.Match[str]) -> Plan:
    """The test files."""
    files = yield from find_files(_TESTS, asked.place(found))
    own = Listing([path for path in files.files if is_own(path)], files.complete)
    return _summary(own, "test file", asked.place(found))


def _summary(files: Listing, what: str, folder: str, word: str = "") -> str:
    """How many files there are: their names if they are few, else their number in each folder."""
    where = f" in `{folder}`" if folder != "." else ""
    named = f" with `{word}` in the name" if word else ""
    if not files.files:
        return f"There are no {what}s{named}{where or ' here'}."
    heading = f"There {'is' if len(files.files) == 1 else 'are'} {counted(len(files.files), what)}{named}{where}:"
    rows = files.files
    if len(rows) > NAMED:
        common = commonpath([dirname(path) for path in rows])
        start = len(common) + 1 if common else 0
        tops = Counter(path[: path.find("/", start) + 1] or path for path in rows)
        rows = [f"{top}  {counted(count, 'file')}" if top[-1] == "/" else top for top, count in sorted(tops.items())]
    return f"{heading}\n\n{block(rows, NAMED)}{files.note}"


def largest(asked: Question, found: re.Match[str]) -> Plan:
    """The files with the most lines, of one language if asked for."""
    number, path = asked.count(found, usual=LARGEST, most=NAMED), asked.place(found)
    word = found.groupdict().get("language") or ""
    options = {"type": word} if word and word.lower() in {known.name.lower() for known in _languages().values()} else {}
    rows = '.matches | sort_by(-.count)[:200][] | "\\(.file)  \\(.count) line\\(if .count == 1 then "" else "s" end)"'
    counts = yield from run("grep", pattern="^", path=path, mode="count", jq=rows, **options)
    own = [row for row in counts.split("\n") if row and not row.startswith("[") and is_own(row.rpartition("  ")[0])]
    where = f" in `{path}`" if path != "." else ""
    if not own:
        return f"I find no text files{where}."
    name, _, size = own[0].rpartition("  ")
    others = f" After it come:\n\n{block(own[1:number])}" if own[1:number] else ""
    return f"The largest {f'{word} ' if options else ''}file{where} is `{name}` with {size}.{others}"


def located(asked: Question, found: re.Match[str]) -> Plan:
    """Where something is that may be a file, or defined in one."""
    name = asked.name(found["name"])
    paths = yield from _of_name(name)
    defined = yield from code.definition(asked, found)
    if not paths:
        return defined
    more = "" if defined.startswith(code.UNDEFINED) else f"\n\n{defined}"
    return f"`{name}` is the name of:\n\n{block(paths, NAMED)}{more}"


def content(asked: Question, found: re.Match[str]) -> Plan:
    """What is in a file or a folder; if it isn't at that path, it is looked for by its name."""
    path = asked.name(found["name"])
    [result] = yield from read_files([path])
    if not result.is_error:
        return _beginning(path, result)
    if _IS_FOLDER in result.text:
        return _folder(path, (yield from run("ls", path=path)))
    if _NOT_A_FILE in result.text:
        try:
            heading, _, rows = (yield from run("view", path=path, depth=1)).partition("\n")
        except Trouble:
            heading = rows = ""
        if heading.partition("  ")[0].endswith("/"):
            return _folder(path, rows)
    paths = yield from _of_name(path)
    nearest = paths[:1] if len(paths) == 1 or (paths and paths[0].count("/") < paths[1].count("/")) else []
    if nearest and path not in paths:
        [result] = yield from read_files(nearest)
        others = f"\n\nOthers of that name:\n\n{block(paths[1:], NAMED)}" if paths[1:] else ""
        return _beginning(paths[0], result) + others
    missing = _MISSING in result.text or _NOT_A_FILE in result.text
    why = f"There is no `{path}` here." if missing else failed(result, "read")
    others = [each for each in paths if each != path]
    return f"{why}\n\nThere are files of that name:\n\n{block(others, NAMED)}" if others else why


def _of_name(name: str) -> Generator[Sequence[Want], Sequence[ToolResult], Sequence[str]]:
    """The files of a name in any case, with or without a suffix; the nearest to the root first."""
    last = PurePosixPath(name).name
    any_case = "".join(f"[{sign.lower()}{sign.upper()}]" if sign.isalpha() else sign for sign in last)
    files = (yield from find_files(any_case if "." in last else f"{{{any_case},{any_case}.*}}")).files
    inside = [path for path in files if f"/{path}".lower().endswith(f"/{name}".lower())]
    return sorted(inside or files, key=lambda path: (path.count("/"), path))


def _beginning(path: str, result: ToolResult) -> str:
    """A file as it is, or its beginning; of a document its text."""
    file = file_text(result.text)
    documents = (part for part in result.content if isinstance(part, Document))
    lines = file.lines or [line for document in documents for line in text_in(document).splitlines()]
    if not lines:
        return f"`{path}`: {file.remarks}"
    part = "\n".join(lines[:LINES])[:CHARACTERS]
    cut = not file.complete or len(part) < len("\n".join(lines))
    note = f"\n\nThat is its beginning: {counted(part.count(chr(10)) + 1, 'line')}." if cut else ""
    return f"`{path}` contains:\n\n{block([part])}{note}"


def _folder(path: str, text: str) -> str:
    entries = [row for row in text.split("\n") if not row.startswith("[")]
    return f"`{path}` contains:\n\n{block(entries, NAMED)}" if entries else f"There is nothing to see in `{path}`."


def languages(asked: Question, found: re.Match[str]) -> Plan:
    """The languages by number of files: the main one, the others, and other formats."""
    files = yield from find_files()
    own = [path for path in files.files if is_own(path)]
    foreign = Counter(match[0] for match in map(_FOREIGN.match, files.files) if match)
    end = files.note
    if foreign:
        names = [f"`{folder}`" for folder, _ in foreign.most_common(FOLDERS)]
        where = listed([*names, "others"] if len(foreign) > FOLDERS else names)
        end = f" Not counted: {counted(foreign.total(), 'file')} of test data or by others, in {where}.{end}"
    if not own:
        return f"There are no files here.{end}"
    found_languages: Counter[Language] = Counter()
    for path in own:
        name = PurePosixPath(path)
        language = _languages().get(name.name) or _languages().get(name.suffix.lower())
        if language and not fnmatch(f"/{path}", "*/queries/*.scm"):  # tree-sitter queries, which look like Scheme
            found_languages[language] += 1
    counts = sorted(found_languages.items(), key=lambda each: (-each[1], each[0].name))
    source = [(language.name, count) for language, count in counts if language.source]
    other = listed([f"{language.name} ({count:,})" for language, count in counts if not language.source])
    if not source:
        return f"I find no source code here, only {other or 'nothing that I know'}.{end}"
    total, most = sum(count for _, count in source), source[0][1]
    main = [name for name, count in source if count == most]
    others = listed([f"{name} ({count:,})" for name, count in source[len(main) :]])
    share = (
        f"{most:,} of its {total:,} source files" if len(source) > 1 else f"all of its {counted(total, 'source file')}"
    )
    answer = ""
    if name := (found.groupdict().get("language") or "").lower():
        answer = "Yes. " if name in map(str.lower, main) else "In part. " if name in others.lower() else "No. "
    answer += f"This project is {'mainly ' if others else ''}written in {listed(main)}: {share}"
    answer += f"{' each' if len(main) > 1 else ''}.{f' The others are {others}.' if others else ''}"
    return answer + (f" Besides, there is {other}." if other else "") + end


@functools.cache
def _languages() -> dict[str, Language]:
    kinds = json.loads(Path(__file__).with_name("languages.json").read_text("utf-8"))
    return {
        key: Language(name, kind == "source")
        for kind, languages in kinds.items()
        for name, keys in languages.items()
        for key in keys
    }
