"""Output that comes after a command's prompt: DjangoMOO sends messages separately from prints, often later."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple


class _Follow(NamedTuple):
    """The lines that come, in this order but not at once, after a line of such a command's output."""

    verb: re.Pattern[str]
    after: re.Pattern[str]
    expected: Sequence[str]


_MOVES = r"(?:go|walk|[nsewud]|[ns][ew]|(?:north|south)(?:east|west)?|east|west|up|down|out)\b"
_LOOK = ("{room}", "")
"""A room's name, and after its description an empty line; who is there may follow."""
_FOLLOWS = tuple(
    _Follow(re.compile(verb, re.IGNORECASE), re.compile(after), expected)
    for verb, after, expected in (
        (_MOVES, r"You leave .*", (r"You arrive at .*",)),
        (_MOVES, r"You arrive at #\d+ \((?P<room>.+)\)\.", _LOOK),
        (r"@?tel(?:eport)?\b|home\b", r"You move to (?P<room>.+) \(#\d+\)\.", _LOOK),
        (r"@?burrow\b", r"You are now in (?P<room>.+) \(#\d+\)\.", _LOOK),
    )
)
_TELLS = re.compile(r"""say\b|"|emote\b|:|wh(?:isper)?\b""", re.IGNORECASE)
_WHOLE = re.compile(r"You: |Huh\?|You can't go ")


def follow_up_state(command: str, lines: Sequence[str]) -> Literal["", "awaited", "came"]:
    """Whether the lines that follow such output are still awaited, or came; empty if nothing follows."""
    state: Literal["", "came"] = ""
    for follow in _FOLLOWS:
        for at, line in enumerate(lines if follow.verb.match(command) else ()):
            if found := follow.after.fullmatch(line):
                names = {key: re.escape(text) for key, text in found.groupdict().items()}
                if not _arrived(lines[at + 1 :], [expected.format(**names) for expected in follow.expected]):
                    return "awaited"
                state = "came"
    return state


def _arrived(lines: Sequence[str], expected: Sequence[str]) -> bool:
    """Whether lines that match are among them, in that order."""
    rest = iter(lines)
    return all(any(re.fullmatch(pattern, line) for line in rest) for pattern in expected)


def is_complete(command: str, line: str) -> bool:
    """Whether this line is the command's whole output."""
    return bool(_TELLS.match(command) or _WHOLE.match(line))
