"""New code written to fit where it goes: as far to the right, and with tabs or spaces as they are used there."""

import re
from collections.abc import Sequence, Set

from denizen.structure.literals import literal_lines
from denizen.tools.editing.whitespace import indent_of

_CLOSES = re.compile(r"\s*(?:[)\]}]|end\b)")
_BESIDE = re.compile(r"\s*(?:@|#|//|/?\*|--|\[)")
"""How a line begins that the next one isn't indented against: a decorator, a comment, an attribute."""


def fit(content: str, language: str, indent: str, lines: Sequence[str]) -> list[str]:
    """The lines of `content`, which stands on its own or as if it were in its place, indented by `indent`.

    `lines` are those of the file that it goes into. What is inside of text literals stays as it is.
    """
    new = content.replace("\r\n", "\n").strip("\n").rstrip().split("\n")
    fixed = literal_lines("\n".join(new).encode("utf-8", "surrogateescape"), language)
    new = _in_style(_dedented(new, fixed, indent), fixed, lines)
    return [line if at in fixed or not line.strip() else indent + line for at, line in enumerate(new)]


def _dedented(lines: Sequence[str], fixed: Set[int], indent: str) -> list[str]:
    """The lines as they stand on their own."""
    free = [line for at, line in enumerate(lines) if at not in fixed and line.strip()]
    common = min((indent_of(line) for line in free), key=len, default="")
    lines = [line if at in fixed else line.removeprefix(common) for at, line in enumerate(lines)]
    rest = [line for at, line in enumerate(lines) if at and at not in fixed and line.strip()]
    least = min((len(indent_of(line)) for line in rest), default=0)
    level = rest and (_CLOSES.match(rest[-1]) or _BESIDE.match(lines[0]))
    if indent and not common and least >= len(indent) + (not level):  # but for its first line, as it would stand there
        lines = [
            lines[0],
            *(line if at in fixed else line.removeprefix(indent) for at, line in enumerate(lines[1:], 1)),
        ]
    return [*lines]


def _in_style(lines: Sequence[str], fixed: Set[int], around: Sequence[str]) -> list[str]:
    """The lines with tabs where those around have tabs, and with spaces where those have spaces."""
    tabs = sum(line.startswith("\t") for line in around)
    spaces = sum(line.startswith("  ") for line in around)
    indents = [indent_of(line) for at, line in enumerate(lines) if at not in fixed and line.strip()]
    if tabs > spaces and not any("\t" in indent for indent in indents):
        unit = min((len(indent) for indent in indents if indent), default=4)
        return [line if at in fixed else _with_tabs(line, unit) for at, line in enumerate(lines)]
    if spaces > tabs and any("\t" in indent for indent in indents):
        unit = min((len(indent_of(line)) for line in around if line.startswith("  ") and line.strip()), default=4)
        return [line if at in fixed else _with_spaces(line, unit) for at, line in enumerate(lines)]
    return [*lines]


def _with_tabs(line: str, unit: int) -> str:
    width = len(indent_of(line))
    return "\t" * (width // unit) + " " * (width % unit) + line[width:]


def _with_spaces(line: str, unit: int) -> str:
    indent = indent_of(line)
    return indent.replace("\t", " " * unit) + line[len(indent) :]
