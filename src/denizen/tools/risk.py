"""How much a change to a file could break (seed 001): what decides whether a person is asked before it."""

import difflib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from denizen.errors import ToolRefused
from denizen.tools.patching.read import FilePatch, read_patch

Level = Literal["low", "medium", "high"]
LEVELS: Sequence[Level] = ("low", "medium", "high")

_CONFIGURATION = re.compile(
    r"(?ix) (^|/) (?: \.github/.+ | \.gitlab-ci\.yml | \.circleci/.+ | \.env[^/]* | \.?[^/]*rc(\.\w+)?"
    r" | dockerfile[^/]* | [^/]*\.dockerfile | docker-compose[^/]* | makefile | gnumakefile"
    r" | cmakelists\.txt | justfile"
    r" | [^/]*\.(?:toml|ya?ml|ini|cfg|conf|properties|gradle|kts|csproj|sln|lock) | setup\.py | conftest\.py"
    r" | (?:package|tsconfig[^/]*|composer|deno|biome)\.jsonc? | package-lock\.json | go\.(?:mod|sum) | gemfile"
    r" | requirements[^/]*\.txt | [^/]*\.config\.[cm]?[jt]s | \.git(?:ignore|attributes|modules) ) $"
)
_ENTRY_POINT = re.compile(
    r"(?ix) (^|/) (?: (?:__main__|__init__|main|manage|wsgi|asgi|app|cli)\.py | (?:index|main|server)\.[cm]?[jt]sx?"
    r" | main\.(?:go|rs|c|cc|cpp|java|kt|swift|rb|php|lua) | lib\.rs | mod\.rs | bin/[^/]+ | program\.cs ) $"
)
_PROSE = re.compile(r"(?i)\.(?:md|rst|txt|adoc)$")
_COMMENTS = (
    (r"(?i)\.(?:py|pyi|rb|sh|bash|zsh|pl|r|jl|nim|tcl|cmake|ps1|exs?)$", r"\s*#(?!!).*"),
    (r"(?i)\.(?:lua|sql|hs|elm|vhdl?)$", r"\s*--(?!\[).*"),
    (
        r"(?i)\.(?:c|h|cc|cpp|cxx|hpp|cs|java|js|jsx|mjs|cjs|ts|tsx|mts|cts|go|rs|kt|swift|scala|dart|php|css|scss)$",
        r"\s*(?://.*|/\*(?:(?!\*/).)*(?:\*/\s*)?|\*(?:[\s*](?:(?!\*/).)*(?:\*/\s*)?)?|\*/\s*)",
    ),
)
"""What a line of nothing but a comment looks like, by the ending of the file's name."""
_DEFINITION = re.compile(
    r"(?x) ^ (?: export\s.+ | module\.exports\b.* | pub(?:\([^)]*\))?\s.+ | public\s.+"
    r" | (?:async\s+)?def\s+[^_\s]\w*.* | class\s+[^_\s].* | __all__\b.* | func\s+(?:\([^)]*\)\s*)?[A-Z].*"
    r" | type\s+[A-Z].* | (?:open\s+|data\s+|sealed\s+)*(?:fun|interface|object|protocol|struct|enum)\s+\w.* ) $"
)
_METHOD = re.compile(r"^\s+(?:async\s+)?def\s+[^_\s]\w*\s*\(.*$")
_LARGEST = 5_000_000
"""Bytes of a file that is looked into."""
_MOST_COMPARED = 3000
"""Lines up to which a change is looked at line by line; more of them have all changed."""


@dataclass(frozen=True, slots=True)
class Risk:
    """A level, and what makes it one."""

    level: Level
    why: str


def risk_of(tool: str, args: Mapping[str, Any], workspace: Path) -> Risk | None:
    """The risk of an edit; None where the call is none.

    Deleting, configuration, entry points and public API are high; comments and prose low; else medium.
    """
    path = str(args.get("path", ""))
    match tool:
        case "edit":
            return _change(path, *_edited(_present(workspace, path), args))
        case "write":
            return _change(path, _present(workspace, path), str(args.get("content", "")))
        case "edit_symbol":
            return _symbol(args, workspace)
        case "apply_patch":
            return _patch(str(args.get("patch", "")))
        case _:
            return None


def exceeds(risk: Risk, most: Level) -> bool:
    """Whether a risk is above what may be done without asking."""
    return LEVELS.index(risk.level) > LEVELS.index(most)


def _edited(text: str, args: Mapping[str, Any]) -> tuple[str, str]:
    """The whole file before and after, so that whole lines are judged; where the text isn't in it, the texts alone."""
    old, new = (str(args.get(name, "")).replace("\r\n", "\n") for name in ("old", "new"))
    if not old or old not in text:
        return old, new
    return text, text.replace(old, new, -1 if args.get("all") else 1)


def _symbol(args: Mapping[str, Any], workspace: Path) -> Risk:
    target, content = str(args.get("target", "")), str(args.get("content", ""))
    if args.get("action") in {"delete", "move"}:
        return Risk("high", f"it takes {target} from where it is")
    path = file_of(target, workspace)
    name = target.rpartition("/")[2] if args.get("action") == "replace" and path != target else ""
    kept = set(content.splitlines())
    defined = (line for line in _present(workspace, path).splitlines() if name and _names(line, name))
    return _judged(path, [line for line in defined if line not in kept], content.splitlines())


def file_of(target: str, workspace: Path) -> str:
    """The file of `FILE/Symbol`; all of it where there is no such file."""
    parts = target.split("/")
    paths = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((path for path in paths if path and os.path.isfile(workspace / path)), target)  # noqa: PTH113 (no path?)


def _patch(patch: str) -> Risk:
    try:
        files = read_patch(patch)
    except ToolRefused:
        return Risk("high", "it can't be told what it changes")
    return max((_patched(file) for file in files), key=lambda risk: LEVELS.index(risk.level))


def _patched(file: FilePatch) -> Risk:
    path = file.new or file.old or ""
    if file.new is None or file.move == "rename":
        return Risk("high", f"it takes {file.old} from where it is")
    lines = [line for hunk in file.hunks for line in hunk.lines]
    gone, come = ([text for sign, text in lines if sign == wanted] for wanted in "-+")
    return _judged(path.partition("/")[2] if file.prefixed and "/" in path else path, gone, come)


def _change(path: str, old: str, new: str) -> Risk:
    return _judged(path, *_apart(old.splitlines(), new.splitlines()))


def _apart(old: Sequence[str], new: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The lines that go, and those that come."""
    if max(len(old), len(new)) > _MOST_COMPARED:
        return old, new
    lines = [*difflib.unified_diff(old, new, n=0, lineterm="")][2:]
    gone, come = ([line[1:] for line in lines if line[0] == sign] for sign in "-+")
    return gone, come


def _judged(path: str, gone: Sequence[str], come: Sequence[str]) -> Risk:
    """The risk of a change by its lines, `gone` and `come`."""
    if _CONFIGURATION.search(path):
        return Risk("high", f"{path} is configuration")
    if _PROSE.search(path):
        return Risk("low", f"{path} is prose")
    if _ENTRY_POINT.search(path):
        return Risk("high", f"{path} is an entry point")
    if all(_is_comment(path, line) for line in (*gone, *come)):
        return Risk("low", "only comments change")
    if any(map(_is_public, gone)):
        return Risk("high", f"it changes the public API in {path}")
    if any(line.strip() for line in gone) and not any(line.strip() for line in come):
        return Risk("high", f"it deletes code in {path}")
    return Risk("medium", f"it changes code in {path}")


def _is_comment(path: str, line: str) -> bool:
    pattern = next((pattern for names, pattern in _COMMENTS if re.search(names, path)), r"\s*")
    return not line.strip() or re.fullmatch(pattern, line) is not None


def _is_public(line: str) -> bool:
    return bool(_DEFINITION.match(line) or _METHOD.match(line))


def _names(line: str, name: str) -> bool:
    return _is_public(line) and re.search(rf"\b{re.escape(name)}\b", line) is not None


def _present(workspace: Path, path: str) -> str:
    """What a file holds; nothing of what is none, or too large."""
    place = workspace / path
    try:
        if place.is_file() and place.stat().st_size <= _LARGEST:
            return place.read_text("utf-8", "replace")
    except (OSError, ValueError):
        pass
    return ""
