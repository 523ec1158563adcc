"""`edit`: an old text of a file becomes a new one."""

from collections.abc import Sequence

from denizen.config.pattern import pattern
from denizen.errors import ToolRefused
from denizen.messages import ToolResult
from denizen.ports import ToolContext, Traits
from denizen.tools.editing.matching import find_loosely, keep_quotes, plain_quotes, reindented, show_nearest
from denizen.tools.editing.texts import LineEnds, Span, difference
from denizen.tools.files.changes import LoadedFile, NewContent, change, load
from denizen.tools.files.workspace import Workspace
from denizen.tools.function import result, tool

MAX_NAMED_LINES = 10  # line numbers in a message
MAX_PLACES = 10_000  # occurrences that one call replaces

_NUMBER = pattern(r"\s*\d+[\t→:]")


@tool(traits=Traits.WRITES, plans=True, shell_names=("replace",))
def edit(turn: ToolContext, path: str, old: str, new: str, all: bool = False) -> ToolResult:
    """Replace a text of a file that occurs once. Where it isn't found exactly, white space may differ.

    Args:
        old: With enough around it to be unique
        all: Replace every occurrence
    """
    workspace = Workspace.of(turn)
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    if not old:
        raise ToolRefused("`old` is empty; to insert, give the line next to the place; to make a file, use write")
    if old == new:
        raise ToolRefused("`old` and `new` are the same, so there is nothing to do")
    source = load(workspace, path)
    line_ends = LineEnds(source.text)
    spans = _occurrences(line_ends.text, old, apart=all)
    if not spans:
        spans = _occurrences(plain_quotes(line_ends.text), plain_quotes(old), apart=all)
    if not spans:
        return _edit_loosely(workspace, source, line_ends, old, new)
    if len(spans) > MAX_PLACES:
        raise ToolRefused(f"{source.path} has this text more than {MAX_PLACES} times; give more of it")
    lines = [line_ends.text.count("\n", 0, begin) + 1 for begin, _ in spans[:MAX_NAMED_LINES]]
    if len(spans) > 1 and not all:
        raise _ambiguous(source.path, len(spans), lines, "; or set `all`")
    places = f"{len(spans)} places: lines" if len(spans) > 1 else "line"
    exact = line_ends.text[slice(*spans[0])] == old
    edits = [(span, new if exact else keep_quotes(line_ends.text[slice(*span)], old, new)) for span in spans]
    how = "" if exact else ", found by ignoring kinds of quotes and dashes:"
    where = f"{places} {_named(len(spans), lines)}{how}"
    return _save(workspace, source, line_ends.replace(edits), where, show=not exact)


def _occurrences(text: str, old: str, *, apart: bool) -> list[Span]:
    """Where the text is, up to one time more than can be replaced; `apart`: without those that overlap."""
    found: list[Span] = []
    at = text.find(old)
    while at >= 0 and len(found) <= MAX_PLACES:
        found.append((at, at + len(old)))
        at = text.find(old, at + (len(old) if apart else 1))
    return found


def _edit_loosely(workspace: Workspace, source: LoadedFile, line_ends: LineEnds, old: str, new: str) -> ToolResult:
    lines, wanted, coming = line_ends.text.split("\n"), old.split("\n"), new.split("\n")
    found = find_loosely(lines, wanted)
    if not found:
        import html

        near = show_nearest(lines, wanted)
        hint = "\nThe nearest, with line numbers that are not part of it:\n" + near if near else ""
        plain = old.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').replace("\\\\", "\\")
        if all(_NUMBER.match(line) for line in wanted if line.strip()):
            hint = "; leave out the line numbers of `read`" + hint
        elif any(form != old and form in line_ends.text for form in (plain, html.unescape(old))):
            hint = "; it does without the escapes: give line ends and characters as they are in the file" + hint
        raise ToolRefused(f"{source.path} doesn't contain this text{hint}")
    if len(found) > 1:
        raise _ambiguous(source.path, len(found), [first + 1 for first, _ in found[:MAX_NAMED_LINES]], ", exactly")
    first, last = found[0]
    before = min(_blank(wanted), _blank(coming))  # blank lines around both aren't part of the change
    after = min(_blank(wanted[::-1]), _blank(coming[::-1]))
    adapted = reindented(lines[first:last], wanted, coming[before : max(len(coming) - after, before)])
    begin = sum(len(line) + 1 for line in lines[:first])
    end = begin + sum(len(line) + 1 for line in lines[first:last])
    span = begin, min(end if not adapted else end - 1, len(line_ends.text))
    edited = line_ends.replace([(span, "\n".join(adapted))])
    if edited == source.text:
        raise ToolRefused(f"lines {first + 1}–{last} of {source.path} are already like `new` except for white space")
    where = f"lines {first + 1}–{last}" if last > first + 1 else f"line {last}"
    return _save(workspace, source, edited, f"{where}, found by ignoring white space:", show=True)


def _blank(lines: Sequence[str]) -> int:
    return next((number for number, line in enumerate(lines) if line.strip()), len(lines))


def _save(workspace: Workspace, source: LoadedFile, text: str, where: str, *, show: bool = False) -> ToolResult:
    change(workspace, {source.path: NewContent(source.encode(text), replaces=source.version)})
    was = difference(source.text, text)
    return result(
        f"Edited {source.path}, {where}" + (f"\n{was.diff}" if show else ""), path=source.path, **was.details()
    )


def _named(count: int, lines: Sequence[int]) -> str:
    return ", ".join(map(str, lines)) + (", …" if count > len(lines) else "")


def _ambiguous(path: str, count: int, lines: Sequence[int], how: str) -> ToolRefused:
    named = _named(count, lines)
    return ToolRefused(
        f"{path} has this text {count} times, at lines {named}: give more of what is around the one meant{how}"
    )
