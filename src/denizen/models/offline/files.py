"""Answers about files: which there are, where one is, what is in it."""

import re
from collections import Counter
from collections.abc import Generator, Sequence
from pathlib import PurePosixPath
from posixpath import commonpath, dirname

from denizen.messages import ToolResult
from denizen.models.offline import search
from denizen.models.offline.languages import suffixes_of
from denizen.models.offline.outputs import Listing, find_files, read_files, shown
from denizen.models.offline.plan import Plan, Trouble, Want, failed, run
from denizen.models.offline.question import Question
from denizen.plural import counted

NAMED = 60
"""How many files are named; of more it is told how many are in each folder."""

LINES = 200
"""How many lines of a file are shown."""

CHARACTERS = 12_000
"""How many characters of a file are shown."""

_FOLDER = "; list it with ls"
_MISSING = " doesn't exist"
"""What `read` says of a folder, and of what isn't there."""
_NO_FILE = " is not a file; "
"""What `view` says of both."""


def listed(asked: Question, found: re.Match[str]) -> Plan:
    """The files, by name where they are few, else by folder; those of one language, or with a word in their names."""
    word = found.groupdict().get("language") or ""
    suffixes = suffixes_of(word)
    folder = asked.place(found)
    listing = yield from find_files(_pattern(word, suffixes), folder)
    return told(listing, f"{word} file" if suffixes else "file", folder, word="" if suffixes else word)


def told(listing: Listing, what: str, folder: str, *, word: str = "") -> str:
    """How many files there are, by name where they are few, else by folder."""
    where = f" in `{folder}`" if folder != "." else ""
    called = f" with `{word}` in the name" if word else ""
    if not listing.files:
        return f"There are no {what}s{called}{where or ' here'}."
    heading = f"There {'is' if len(listing.files) == 1 else 'are'} {counted(len(listing.files), what)}{called}{where}:"
    rows = listing.files if len(listing.files) <= NAMED else _by_folder(listing.files)
    return f"{heading}\n\n{_block(rows)}{listing.note}"


def located(asked: Question, found: re.Match[str]) -> Plan:
    """Where files of a name are; one like `Cart.total` may be defined in a file."""
    name = asked.name(found["name"])
    paths = yield from _called(name)
    if paths:
        return f"`{name}` is here:\n\n{_block(paths)}"
    defined = yield from search.definition(asked, found)
    return f"There is no file called `{name}` here." if defined.startswith(search.UNDEFINED) else defined


def whereabouts(asked: Question, found: re.Match[str]) -> Plan:
    """Where something is that may be a file, or defined in one: the files of that name, and the definitions."""
    paths = yield from _called(asked.name(found["name"]))
    defined = yield from search.definition(asked, found)
    if not paths:
        return defined
    more = "" if defined.startswith(search.UNDEFINED) else f"\n\n{defined}"
    return f"`{asked.name(found['name'])}` is the name of:\n\n{_block(paths)}{more}"


def content(asked: Question, found: re.Match[str]) -> Plan:
    """What is in a file or a folder; one that isn't where it was said to be is looked for by its name."""
    path = asked.name(found["name"])
    [result] = yield from read_files([path])
    if not result.is_error:
        return _told(path, result.text)
    if _FOLDER in result.text:
        return _inside(path, (yield from run("ls", path=path)))
    if _NO_FILE in result.text and (rows := (yield from _viewed(path))):
        return _inside(path, rows)
    paths = yield from _called(path)
    if paths and _is_meant(paths) and path not in paths:
        [result] = yield from read_files(paths[:1])
        others = f"\n\nOthers of that name:\n\n{_block(paths[1:])}" if paths[1:] else ""
        return _told(paths[0], result.text) + others
    missing = _MISSING in result.text or _NO_FILE in result.text
    why = f"There is no `{path}` here." if missing else failed(result, "read")
    others = [each for each in paths if each != path]
    return f"{why}\n\nThere are files of that name:\n\n{_block(others)}" if others else why


def _is_meant(paths: Sequence[str]) -> bool:
    """Whether one of them is nearer to the root than all others: the first."""
    return len(paths) == 1 or paths[0].count("/") < paths[1].count("/")


def _viewed(path: str) -> Generator[Sequence[Want], Sequence[ToolResult], str]:
    """The entries of a folder, as `view` shows them; empty for what isn't one."""
    try:
        heading, _, rows = (yield from run("view", path=path, depth=1)).partition("\n")
    except Trouble:
        return ""
    return rows if heading.partition("  ")[0].endswith("/") else ""


def _called(name: str) -> Generator[Sequence[Want], Sequence[ToolResult], Sequence[str]]:
    """The files of a name in any case of its letters, with or without an ending; the nearest to the root first."""
    last = PurePosixPath(name).name
    any_case = "".join(f"[{sign.lower()}{sign.upper()}]" if sign.isalpha() else sign for sign in last)
    listing = yield from find_files(any_case if "." in last else f"{{{any_case},{any_case}.*}}")
    inside = [path for path in listing.files if f"/{path}".lower().endswith(f"/{name}".lower())]
    return sorted(inside or listing.files, key=lambda path: (path.count("/"), path))


def _told(path: str, text: str) -> str:
    """A file's beginning, as it is."""
    file = shown(text)
    if not file.lines:
        return f"`{path}`: {file.remarks}"
    part = "\n".join(file.lines[:LINES])[:CHARACTERS]
    left_out = not file.complete or len(part) < len("\n".join(file.lines))
    note = f"\n\nThat is its beginning: {counted(part.count(chr(10)) + 1, 'line')}." if left_out else ""
    fence = "````" if "```" in part else "```"
    return f"`{path}` contains:\n\n{fence}\n{part}\n{fence}{note}"


def _inside(path: str, text: str) -> str:
    """A folder's entries."""
    rows = text.split("\n")
    entries = [row for row in rows if not row.startswith("[")]
    if not entries:
        return f"There is nothing to see in `{path}`."
    return f"`{path}` contains:\n\n{_block(entries)}"


def _pattern(word: str, suffixes: Sequence[str]) -> str:
    """What `find` is asked for."""
    if suffixes:
        return f"*{{{','.join(suffixes)}}}" if len(suffixes) > 1 else f"*{suffixes[0]}"
    return f"*{word}*" if word else "*"


def _by_folder(files: Sequence[str]) -> list[str]:
    """How many there are in each folder below the one that holds them all, and the files beside these folders."""
    above = commonpath([dirname(path) for path in files])
    start = len(above) + 1 if above else 0
    tops = Counter(path[: path.find("/", start) + 1] or path for path in files)
    return [f"{top}  {counted(count, 'file')}" if top.endswith("/") else top for top, count in sorted(tops.items())]


def _block(rows: Sequence[str]) -> str:
    more = [f"… and {len(rows) - NAMED} more"] if len(rows) > NAMED else []
    return "\n".join(["```", *rows[:NAMED], *more, "```"])
