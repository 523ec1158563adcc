"""Answers about files: which there are, where one is, what is in it, and their languages."""

import functools
import json
import re
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from posixpath import commonpath, dirname
from typing import Final

from denizen.messages import Document, ToolResult
from denizen.models.offline import code, plan
from denizen.models.offline.question import Question
from denizen.models.offline.rules import rules
from denizen.text.documents import text_in
from denizen.text.plural import counted

MAX_NAMED: Final = 60
"""Files that are named; of more, their number in each folder is."""
MAX_LINES, MAX_CHARS = 200, 12_000
"""Lines and characters of a file that are shown."""
DEFAULT_LARGEST: Final = 5

_FOREIGN: Final = re.compile(
    r"(?:.*?/)??(?:node_modules|bower_components|vendor|third_party|site-packages|\.?venv"
    r"|(?:test|__)?_?fixtures(?:__)?|test[-_]?data|tests?/(?:.*?/)??data)(?=/)"
)
"""The path to a folder of other people's files, or of test data."""


def is_own(path: str) -> bool:
    """Whether a file belongs to the project: it's neither other people's nor test data."""
    return not _FOREIGN.match(path)


def listing(asked: Question, found: re.Match[str]) -> plan.Plan:
    """The files, by name or by folder; those of one language, or with a word in their names."""
    word, path = found.groupdict().get("language") or "", asked.place(found)
    suffixes = [suffix for suffix, name in _languages().items() if suffix[0] == "." and name.lower() == word.lower()]
    if suffixes:
        files = yield from plan.find_files(
            f"{{*{',*'.join(suffixes)}}}" if len(suffixes) > 1 else f"*{suffixes[0]}", path
        )
        return _summary(files, f"{word} file", code.within(path))
    files = yield from plan.find_files(f"*{word}*" if word else "*", path)
    return _summary(files, "file", (f" with `{word}` in the name" if word else "") + code.within(path))


def tests(asked: Question, found: re.Match[str]) -> plan.Plan:
    """The test files."""
    path = asked.place(found)
    files = yield from plan.find_files(rules().files["tests"], path)
    return _summary(plan.Rows([*filter(is_own, files.lines)], files.complete), "test file", code.within(path))


def _summary(files: plan.Rows, what: str, where: str) -> str:
    """The number of files, and their names if they are few, otherwise their number in each folder."""
    rows = files.lines
    if not rows:
        return f"There are no {what}s{where or ' here'}."
    heading = f"There {'is' if len(rows) == 1 else 'are'} {counted(len(rows), what)}{where}:"
    if len(rows) > MAX_NAMED:
        common = commonpath([dirname(path) for path in rows])
        start = len(common) + 1 if common else 0
        tops = Counter(path[: path.find("/", start) + 1] or path for path in rows)
        rows = [f"{top}  {counted(count, 'file')}" if top[-1] == "/" else top for top, count in sorted(tops.items())]
    return f"{heading}\n\n{plan.block(rows, MAX_NAMED)}{_unseen(files)}"


def _unseen(files: plan.Rows) -> str:
    return "" if files.complete else "\n\nI see only a part of the files; there are more."


def largest(asked: Question, found: re.Match[str]) -> plan.Plan:
    """The files with the most lines, of one language if asked for."""
    number, path = asked.count(found, DEFAULT_LARGEST, MAX_NAMED), asked.place(found)
    word = found.groupdict().get("language") or ""
    options = {"type": word} if word.lower() in map(str.lower, _languages().values()) else {}
    rows = '.matches | sort_by(-.count)[:200][] | "\\(.file)  \\(.count) line\\(if .count == 1 then "" else "s" end)"'
    counts = plan.rows_in((yield from plan.run("grep", pattern="^", path=path, mode="count", jq=rows, **options)))
    own = [row for row in counts.lines if is_own(row.rpartition("  ")[0])][:number]
    if not own:
        return f"I find no text files{code.within(path)}."
    return f"The largest {f'{word} ' if options else ''}files{code.within(path)}:\n\n{plan.block(own, MAX_NAMED)}"


def located(asked: Question, found: re.Match[str]) -> plan.Plan:
    """The place of a name that may be a file, or defined in one."""
    name = asked.name(found["name"])
    paths = yield from _of_name(name)
    defined = yield from code.definition(asked, found)
    if not paths:
        return defined
    more = "" if defined.startswith(code.UNDEFINED) else f"\n\n{defined}"
    return f"`{name}` is the name of:\n\n{plan.block(paths, MAX_NAMED)}{more}"


def content(asked: Question, found: re.Match[str]) -> plan.Plan:
    """What is in a file or a folder; if it isn't at that path, it is looked for by its name."""
    path = asked.name(found["name"])
    [result] = yield from plan.read_files([path])
    if not result.is_error:
        return beginning(path, result)
    try:
        return _summary((yield from plan.find_files(path=path)), "file", code.within(path))
    except plan.Trouble as trouble:
        why = f"There is no `{path}` here." if "doesn't exist" in str(trouble) else plan.failed(result, "read")
    paths = [each for each in (yield from _of_name(path)) if each != path]
    if len(paths) == 1 or (paths and paths[0].count("/") < paths[1].count("/")):
        [result] = yield from plan.read_files(paths[:1])
        others = f"\n\nOthers of that name:\n\n{plan.block(paths[1:], MAX_NAMED)}" if paths[1:] else ""
        return beginning(paths[0], result) + others
    return f"{why}\n\nThere are files of that name:\n\n{plan.block(paths, MAX_NAMED)}" if paths else why


def _of_name(name: str) -> Generator[Sequence[plan.Want], Sequence[ToolResult], Sequence[str]]:
    """The files of a name in any case, with or without a suffix; the nearest to the root first."""
    last = PurePosixPath(name).name
    any_case = "".join(f"[{sign.lower()}{sign.upper()}]" if sign.isalpha() else sign for sign in last)
    files = (yield from plan.find_files(any_case if "." in last else f"{{{any_case},{any_case}.*}}")).lines
    inside = [path for path in files if f"/{path}".lower().endswith(f"/{name}".lower())]
    return sorted(inside or files, key=lambda path: (path.count("/"), path))


def beginning(path: str, result: ToolResult, most: int = MAX_LINES) -> str:
    """A file as it is, or its beginning; of a document its text."""
    file = plan.file_text(result.text)
    documents = (part for part in result.content if isinstance(part, Document))
    lines = file.lines or [line for document in documents for line in text_in(document).splitlines()]
    if not lines:
        return f"`{path}`: {result.text.strip()}"
    part = "\n".join(lines[:most])[:MAX_CHARS]
    cut = not file.complete or len(part) < len("\n".join(lines))
    note = f"\n\nThat is its beginning: {counted(part.count(chr(10)) + 1, 'line')}." if cut else ""
    return f"`{path}` contains:\n\n{plan.block([part])}{note}"


def languages(asked: Question, found: re.Match[str]) -> plan.Plan:
    """The languages by number of files, and other formats; whether one of them is the project's."""
    files = yield from plan.find_files()
    own = [*filter(is_own, files.lines)]
    foreign = len(files.lines) - len(own)
    own = [path for path in own if not fnmatch(f"/{path}", "*/queries/*.scm")]  # tree-sitter's, which look like Scheme
    end = f" Not counted: {counted(foreign, 'file')} of test data or by others." if foreign else ""
    end += _unseen(files)
    if not own:
        return f"There are no files here.{end}"
    names = [_languages().get(path.name) or _languages().get(path.suffix.lower()) for path in map(PurePosixPath, own)]
    counts = sorted(Counter(name for name in names if name).items(), key=lambda each: (-each[1], each[0]))
    source = [(name, count) for name, count in counts if name not in _kinds()["other"]]
    other = plan.listed([f"{name} ({count:,})" for name, count in counts if name in _kinds()["other"]])
    if not source:
        return f"I find no source code here, only {other or 'nothing that I know'}.{end}"
    answer, name = "", (found.groupdict().get("language") or "").lower()
    if name:
        main = [each.lower() for each, count in source if count == source[0][1]]
        answer = "Yes. " if name in main else "In part. " if name in (each.lower() for each, _ in source) else "No. "
    total = counted(sum(count for _, count in source), "source file")
    answer += f"This project has {total}: {plan.listed([f'{name} ({count:,})' for name, count in source])}."
    return answer + (f" Besides, there is {other}." if other else "") + end


@functools.cache
def _kinds() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """The languages of `source` and of `other` files, with their suffixes and file names."""
    return json.loads(Path(__file__).with_name("languages.json").read_text("utf-8"))


@functools.cache
def _languages() -> Mapping[str, str]:
    """The language of each suffix and file name."""
    return {key: name for kind in _kinds().values() for name, keys in kind.items() for key in keys}
