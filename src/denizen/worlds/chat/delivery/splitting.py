"""Splits a message into parts that fit a channel: between lines or words, keeping code fences intact."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from denizen.ports import ChannelLimits, OutboundMessage

_GAP = re.compile(r"\A(?:(?: *\n)+| +)")
"""The text dropped at a cut: line ends and blank lines, but not the next line's indentation; or spaces."""
_FENCE = re.compile(r"^(?P<indent> {0,3})(?P<marks>`{3,}(?=[^`\n]*$)|~{3,})(?P<info>[^\n]*)$", re.MULTILINE)


class _Fence(NamedTuple):
    """An open code fence: the position of its line, the line, and the line that closes it."""

    start: int
    line: str
    end: str


def split_message(message: OutboundMessage, limits: ChannelLimits) -> list[OutboundMessage]:
    """Split a message into parts of at most `limits.length`, each with its own id.

    The first part replaces the preview; the last one has the media and the choices.
    """
    pieces = [*split_text(message.content, limits)] or [""]
    if len(pieces) == 1:
        return [message]
    parts = [
        replace(message, content=piece, media=(), choices=(), edits="", id=f"{message.id}/{number}")
        for number, piece in enumerate(pieces, 1)
    ]
    parts[0] = replace(parts[0], edits=message.edits)
    parts[-1] = replace(parts[-1], media=message.media, choices=message.choices)
    return parts


def split_text(text: str, limits: ChannelLimits) -> Iterator[str]:
    """Split a text into pieces of at most `limits.length`: between lines or words if possible, never in a character.

    A code fence that spans a cut is closed, and reopened in the next piece.
    """
    while limits.length and limits.measure(text) > limits.length:
        cut = _find_cut(text, limits, limits.length)
        fence = _open_fence(text[:cut], limits)
        if fence:
            cut = _find_cut(text, limits, limits.length - limits.measure(f"\n{fence.end}"), after=len(fence.line) + 1)
            fence = _open_fence(text[:cut], limits)
        if fence and fence.start and not text[fence.start + len(fence.line) : cut].strip():
            cut, fence = fence.start, None  # no code fits: the fence moves to the next piece
        if fence is None:
            yield text[:cut].removesuffix("\n")
            text = _GAP.sub("", text[cut:])
            continue
        yield f"{text[:cut]}\n{fence.end}"
        rest = text[cut:].removeprefix("\n")
        line, _, later = rest.partition("\n")
        text = later if _closes(line, fence) else f"{fence.line}\n{rest}"
    if text:
        yield text


def _find_cut(text: str, limits: ChannelLimits, room: int, after: int = 0) -> int:
    """The position to cut at. The first piece measures at most `room`, and has over `after` characters if possible."""
    fits = bisect_right(range(min(len(text), room) + 1), room, key=lambda count: limits.measure(text[:count])) - 1
    least = max(fits // 2, after)
    for gap in ("\n", " "):
        if (found := text.rfind(gap, least, fits + 1)) > 0:
            return found
    from wcwidth import grapheme_boundary_before  # takes 50 ms, and is seldom needed

    cut = grapheme_boundary_before(text, fits + 1)
    return max(cut if cut > least else fits, 1)


def _open_fence(text: str, limits: ChannelLimits) -> _Fence | None:
    """The code fence that is open at the end of the text; None also if its line is too long to repeat."""
    fence: _Fence | None = None
    for match in _FENCE.finditer(text):
        if fence is None:
            fence = _Fence(match.start(), match[0], match["indent"] + match["marks"])
        elif _closes(match[0], fence):
            fence = None
    return fence if fence and limits.measure(fence.line) <= limits.length // 4 else None


def _closes(line: str, fence: _Fence) -> bool:
    marks, text = fence.end.strip(), line.strip()
    return text.startswith(marks) and not text.strip(marks[0])
