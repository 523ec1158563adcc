"""What a tool changed in files, for the screen."""

from collections.abc import Sequence
from typing import Any

from denizen.cli.text import printable
from denizen.messages import ToolResult

_COLOURS = {"+": "green", "-": "red"}

Coloured = Sequence[tuple[str, str]]
"""Lines, each with its colour."""


def changes(details: Any) -> Coloured:
    """The lines of the diffs in a result's details."""
    edits = ToolResult("", "", [], details=details).edits
    return [line for edit in edits for line in coloured(printable(str(edit["diff"])))]


def coloured(diff: str) -> Coloured:
    """The lines of a diff."""
    return [(line, _COLOURS.get(line[:1], "bright_black")) for line in diff.splitlines()]
