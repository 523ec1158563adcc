"""How much a change to a file could break (seed 001): what decides whether a person is asked before it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

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
_COMMENT = re.compile(r"^\s*(?:\#(?!\[|!|include|define|if|else|endif|pragma)|//|--(?=\s)|/\*|\*(?!\w)|\*/|$)")
_DEFINITION = re.compile(
    r"(?x) ^ (?: export\s.+ | module\.exports\b.* | pub(?:\([^)]*\))?\s.+ | public\s.+"
    r" | (?:async\s+)?def\s+[^_\s]\w*.* | class\s+[^_\s].* | __all__\b.* | func\s+(?:\([^)]*\)\s*)?[A-Z].*"
    r" | type\s+[A-Z].* | (?:open\s+|data\s+|sealed\s+)*(?:fun|interface|object|protocol|struct|enum)\s+\w.* ) $"
)
_METHOD = re.compile(r"^\s+(?:async\s+)?def\s+[^_\s]\w*\s*\(.*$")
_DELETING = ("*** Delete File:", "*** Move to:", "deleted file mode", "rename from ")


@dataclass(frozen=True, slots=True)
class Risk:
    """A level, and what makes it one."""

    level: Level
    why: str


def risk_of(tool: str, args: Mapping[str, Any], workspace: Path) -> Risk | None:
    """The risk of an edit; None where the call is none.

    Deleting, configuration, entry points and public API are high; comments and prose low; else medium.
    """
    match tool:
        case "edit":
            return _worst(_changed(str(args.get("path", "")), *_texts(args, "old", "new")))
        case "write":
            path = str(args.get("path", ""))
            return _worst(_changed(path, _present(workspace, path), str(args.get("content", ""))))
        case "edit_symbol":
            return _symbol(args)
        case "apply_patch":
            return _patch(str(next(iter(args.values()), "")))
        case _:
            return None


def exceeds(risk: Risk, most: Level) -> bool:
    """Whether a risk is above what may be done without asking."""
    return LEVELS.index(risk.level) > LEVELS.index(most)


def _symbol(args: Mapping[str, Any]) -> Risk:
    target = str(args.get("target", args.get("path", "")))
    if args.get("action") in {"delete", "move"}:
        return Risk("high", f"it takes {target} from where it is")
    return _worst(_changed(target, "", str(args.get("content", ""))))


def _patch(patch: str) -> Risk:
    if any(line.startswith(_DELETING) or line.startswith("+++ /dev/null") for line in patch.splitlines()):
        return Risk("high", "it deletes or moves a file")
    found: list[Risk] = []
    path, old, new = "", list[str](), list[str]()
    for line in [*patch.splitlines(), "*** End"]:
        if line.startswith(("*** ", "--- ", "+++ ")):
            if old or new:
                found.append(_worst(_changed(path, "\n".join(old), "\n".join(new))))
            old, new = list[str](), list[str]()
            path = line.partition(": ")[2] or line[4:].removeprefix("b/").removeprefix("a/") or path
        elif line.startswith("-"):
            old.append(line[1:])
        elif line.startswith("+"):
            new.append(line[1:])
    return _worst(found)


def _changed(path: str, old: str, new: str) -> list[Risk]:
    if _CONFIGURATION.search(path):
        return [Risk("high", f"{path} is configuration")]
    if _PROSE.search(path):
        return [Risk("low", f"{path} is prose")]
    if _ENTRY_POINT.search(path):
        return [Risk("high", f"{path} is an entry point")]
    before, after = old.splitlines(), new.splitlines()
    gone = [line for line in before if line not in set(after)]
    come = [line for line in after if line not in set(before)]
    if all(_COMMENT.match(line) for line in (*gone, *come)):
        return [Risk("low", "only comments change")]
    if old and not new.strip():
        return [Risk("high", f"it deletes code in {path}")]
    if any(_is_public(line) for line in gone):
        return [Risk("high", f"it changes the public API in {path}")]
    return [Risk("medium", f"it changes code in {path}")]


def _is_public(line: str) -> bool:
    return bool(_DEFINITION.match(line) or _METHOD.match(line))


def _texts(args: Mapping[str, Any], *names: str) -> list[str]:
    return [str(args.get(name, "")) for name in names]


def _present(workspace: Path, path: str) -> str:
    try:
        return (workspace / path).read_text("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _worst(risks: Sequence[Risk]) -> Risk:
    return max(
        risks, key=lambda risk: LEVELS.index(risk.level), default=Risk("medium", "what it changes can't be told")
    )
