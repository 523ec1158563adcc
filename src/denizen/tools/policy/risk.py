"""How much a call could break (decisions, "Risk"), which decides whether a person is asked."""

import ast
import difflib
import re
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from denizen.config.commands import possible_commands, simple_commands
from denizen.errors import ToolRefused
from denizen.tools.git import only_reads
from denizen.tools.patching.apply import apply_hunks
from denizen.tools.patching.parse import FilePatch, read_patch
from denizen.tools.policy.call_files import file_of

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
"""The pattern of a line that is only a comment, by the ending of the file's name."""
_DEFINITION = re.compile(
    r"(?x) ^ (?: export\s.+ | module\.exports\b.* | pub(?:\([^)]*\))?\s.+ | public\s.+"
    r" | (?:async\s+)?def\s+[^_\s]\w*.* | class\s+[^_\s].* | __all__\b.* | func\s+(?:\([^)]*\)\s*)?[A-Z].*"
    r" | type\s+[A-Z].* | (?:open\s+|data\s+|sealed\s+)*(?:fun|interface|object|protocol|struct|enum)\s+\w.* ) $"
)
_METHOD = re.compile(r"^\s+(?:async\s+)?def\s+[^_\s]\w*\s*\(.*$")
_READING_PROGRAMS = re.compile(
    r"\[|basename|cat|cd|cksum|cmp|comm|cut|df|diff|dirname|du|echo|egrep|false|fgrep|find|grep|head|id|ls|md5sum|nl|printf"
    r"|pwd|readlink|realpath|rg|seq|sha256sum|stat|tac|tail|test|tr|true|uname|wc|which|whoami"
)
"""Programs that only read."""
_WRITING_OPTIONS = re.compile(r"-(?:delete|exec|ok|fprint|fls)|--(?:pre|hostname-bin)")
"""Options with which some of them do more."""
_DELETING_COMMANDS = re.compile(
    r"(?:rm|rmdir|unlink|shred|truncate|mv)\b|git (?:rm|mv|clean|reset|checkout|restore|switch|stash)\b|find .*-delete"
)
_MAX_FILE_BYTES = 5_000_000  # bytes of a file that is looked into
_MAX_PARSED_CHARS = 500_000  # characters of a program up to which it is parsed and compared
_MAX_COMPARED_LINES = 3000  # lines up to which files are compared line by line; beyond, all lines count as changed


@dataclass(frozen=True, slots=True)
class Risk:
    """A level, and the reason for it."""

    level: Level
    why: str


def risk_of(tool: str, args: Mapping[str, Any], workspace: Path) -> Risk | None:
    """The risk of an edit or a command; None if the call is neither.

    Deleting, configuration, entry points and public API are high; comments, docstrings, prose and commands that are
    known to read only low; else medium.
    """
    path = str(args.get("path", ""))
    match tool:
        case "edit":
            text = _present(workspace, path)
            old, new = (str(args.get(name, "")).replace("\r\n", "\n") for name in ("old", "new"))
            if not old or old not in text:  # then by the texts alone
                return _change(path, old, new)
            return _change(path, text, text.replace(old, new, -1 if args.get("all") else 1))
        case "write":
            return _change(path, _present(workspace, path), str(args.get("content", "")))
        case "edit_symbol":
            return _symbol(args, workspace)
        case "apply_patch":
            try:
                files = read_patch(str(args.get("patch", "")))
            except ToolRefused:
                return Risk("high", "the patch can't be read")
            return max((_patched(file, workspace) for file in files), key=lambda risk: LEVELS.index(risk.level))
        case "bash":
            command = str(args.get("command", ""))
            simple = simple_commands(command)
            if simple is not None and all(_only_reads(part.text, workspace) for part in simple):
                return Risk("low", "it only reads")
            if any(
                _DELETING_COMMANDS.match(each)
                for part in possible_commands(command)
                for each in part.effective_commands()
            ):
                return Risk("high", "it deletes, moves or discards files or changes")
            return Risk("medium", "it may change files")
        case _:
            return None


def exceeds(risk: Risk, most: Level) -> bool:
    """Whether a risk is above what may be done without asking."""
    return LEVELS.index(risk.level) > LEVELS.index(most)


def _only_reads(command: str, workspace: Path) -> bool:
    """Whether a simple command is known to be harmless."""
    program, *words = shlex.split(command)
    if program == "git":
        return only_reads(words, workspace)
    return bool(_READING_PROGRAMS.fullmatch(program)) and not any(map(_WRITING_OPTIONS.match, words))


def _symbol(args: Mapping[str, Any], workspace: Path) -> Risk:
    target, content = str(args.get("target", "")), str(args.get("content", ""))
    if args.get("action") in {"delete", "move"}:
        return Risk("high", f"it removes {target}")
    path = file_of(target, workspace)
    name = target.rpartition("/")[2] if args.get("action") == "replace" and path != target else ""
    text = _present(workspace, path)
    if name and path.endswith((".py", ".pyi")):
        inside, body = _parsed(text), list[ast.stmt]()
        for part in re.split(r"[/.]", target.removeprefix(f"{path}/")):
            body = [node for node in inside if getattr(node, "name", "") == part]
            inside = [child for node in body for child in getattr(node, "body", [])]
        program = _plain(body)
        if program and program == _plain(_parsed(textwrap.dedent(content))):
            return Risk("low", "only comments and docstrings change")
    kept = set(map(str.strip, content.splitlines()))
    named = re.compile(rf"\b{re.escape(name)}\b")
    defined = [line for line in text.splitlines() if name and _is_public(line) and named.search(line)]
    return _judged(path, [line for line in defined if line.strip() not in kept], content.splitlines())


def _patched(file: FilePatch, workspace: Path) -> Risk:
    path = file.new or file.old or ""
    if file.new is None or file.move == "rename":
        return Risk("high", f"it removes {file.old}")
    path = file.meant(path, lambda name: (workspace / name).is_file())
    lines = [line for hunk in file.hunks for line in hunk.lines]
    removed, added = ([text for sign, text in lines if sign == wanted] for wanted in "-+")
    old = _present(workspace, path)
    with suppress(ToolRefused):
        if old and _is_same_program(path, old, apply_hunks(path, old, file.hunks)[0]):
            removed, added = list[str](), list[str]()
    return _judged(path, removed, added)


def _change(path: str, old: str, new: str) -> Risk:
    before, after = old.splitlines(), new.splitlines()
    if _is_same_program(path, old, new):
        before = after = list[str]()
    elif max(len(before), len(after)) <= _MAX_COMPARED_LINES:
        lines = [*difflib.unified_diff(before, after, n=0, lineterm="")][2:]
        before, after = ([line[1:] for line in lines if line[0] == sign] for sign in "-+")
    return _judged(path, before, after)


def _is_same_program(path: str, old: str, new: str) -> bool:
    """Whether two Python programs differ only in comments, docstrings and layout."""
    if not path.endswith((".py", ".pyi")) or old.startswith("#!") != new.startswith("#!"):
        return False
    program = _plain(_parsed(old))
    return program != "" and program == _plain(_parsed(new))


def _parsed(text: str) -> list[ast.stmt]:
    """The statements of a program; none if it is none."""
    try:
        return ast.parse(text).body if len(text) <= _MAX_PARSED_CHARS else []
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _plain(body: list[ast.stmt]) -> str:
    """Statements without docstrings and comments; empty if there are none, or too deep ones."""
    tree = ast.Module(body, [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if node.body and ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:]
            node.body = node.body or [ast.Pass()]
    try:
        return ast.dump(tree) if body else ""
    except RecursionError:
        return ""


def _judged(path: str, removed: Sequence[str], added: Sequence[str]) -> Risk:
    """The risk of a change by the lines that it removes and adds."""
    if _CONFIGURATION.search(path):
        return Risk("high", f"{path} is configuration")
    if _PROSE.search(path):
        return Risk("low", f"{path} is prose")
    if _ENTRY_POINT.search(path):
        return Risk("high", f"{path} is an entry point")
    comment = next((pattern for names, pattern in _COMMENTS if re.search(names, path)), r"\s*")
    if all(not line.strip() or re.fullmatch(comment, line) for line in (*removed, *added)):
        return Risk("low", "only comments and docstrings change")
    if any(map(_is_public, removed)):
        return Risk("high", f"it changes the public API in {path}")
    if any(line.strip() for line in removed) and not any(line.strip() for line in added):
        return Risk("high", f"it deletes code in {path}")
    return Risk("medium", f"it changes code in {path}")


def _is_public(line: str) -> bool:
    return bool(_DEFINITION.match(line) or _METHOD.match(line))


def _present(workspace: Path, path: str) -> str:
    """The text of a file; empty if it is missing, no regular file, or too large."""
    place = workspace / path
    try:
        if place.is_file() and place.stat().st_size <= _MAX_FILE_BYTES:
            return place.read_text("utf-8", "replace")
    except (OSError, ValueError):
        pass
    return ""
