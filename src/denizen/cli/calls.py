"""A tool call in one short line."""

import re
from typing import Any

from denizen.cli.text import cut, one_line

LONGEST = 120
"""Cells of the line."""

_SUBJECTS = (
    *("command", "pattern", "url", "query", "target", "name", "path", "args", "text"),
    *("question", "label", "outputs"),
)
"""Arguments that say best what a call is about."""

_PATCHED = re.compile(r"^(?:\+\+\+ (?:b/)?|\*\*\* (?:Add|Update|Delete) File: )(?!/dev/null)([^\t\n]+)", re.MULTILINE)


def in_short(name: str, args: dict[str, Any]) -> str:
    """The tool, and what it is about: `grep TODO in src`."""
    about = next((str(args[key]) for key in _SUBJECTS if args.get(key)), "")
    if "patch" in args:
        about = ", ".join(dict.fromkeys(_PATCHED.findall(str(args["patch"]))))
    if "pattern" in args and args.get("path") not in {None, "", "."}:
        about += f" in {args['path']}"
    if args.get("start") not in {None, 0, 1}:
        about += f" from {args['start']}"
    return cut(one_line(f"{name} {args.get('action', args.get('what', ''))} {about}"), LONGEST)
