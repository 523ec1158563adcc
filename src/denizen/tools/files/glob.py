"""File patterns as git reads them: `*.py` anywhere, `src/**/*.py` from the top, `build/` for folders alone.

Matching takes time in proportion to the name and the pattern, whatever a hostile pattern looks like.
"""

import re
import string
from collections.abc import Sequence

from denizen.errors import ToolRefused

MOST_ALTERNATIVES = 200
"""Patterns that braces may stand for."""

_BRACES = re.compile(r"\{([^{},]*,[^{}]*)\}")
_CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, [*range(32), 127])),
    "digit": string.digits,
    "graph": string.ascii_letters + string.digits + string.punctuation,
    "lower": string.ascii_lowercase,
    "print": string.ascii_letters + string.digits + string.punctuation + " ",
    "punct": string.punctuation,
    "space": string.whitespace,
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}
_CLASS = re.compile(r"\[:(\w+):\]")
_NEVER = "(?!)"
_NOTHING = re.compile(_NEVER)


class Glob:
    """One pattern. Names are given as their parts, from where the pattern counts."""

    def __init__(self, pattern: str) -> None:
        self._folders_only = pattern.endswith("/")
        pattern = pattern.removesuffix("/")
        self._parts = _parts(pattern) if "/" in pattern else []
        self._name = None if "/" in pattern else re.compile(_regex(pattern), re.DOTALL)

    def matches(self, names: Sequence[str], *, is_folder: bool) -> bool:
        """Whether it is the entry of these names, not one of those above it."""
        if self._folders_only and not is_folder:
            return False
        if self._name:
            return self._name.fullmatch(names[-1]) is not None
        return _match(self._parts, names)


def any_glob(pattern: str) -> list[Glob]:
    """The patterns that one with braces (`*.{ts,tsx}`) stands for. Raises ToolRefused for too many."""
    return [Glob(one) for one in _expand(pattern.removeprefix("./"))]


def _expand(pattern: str) -> list[str]:
    open_ones = [pattern]
    done: list[str] = []
    while open_ones:
        one = open_ones.pop()
        braces = _BRACES.search(one)
        if braces is None:
            done.append(one)
        else:
            open_ones += [one[: braces.start()] + choice + one[braces.end() :] for choice in braces[1].split(",")]
        if len(open_ones) + len(done) > MOST_ALTERNATIVES:
            raise ToolRefused(f"the pattern stands for more than {MOST_ALTERNATIVES} others")
    return done


def _parts(pattern: str) -> list[re.Pattern[str] | None]:
    """Of a pattern with slashes: what each part of a name must be; None for any number of parts."""
    parts = pattern.removeprefix("/").split("/")
    compiled = [None if part == "**" else re.compile(_regex(part), re.DOTALL) for part in parts]
    return [*compiled, re.compile(".*", re.DOTALL)] if parts[-1] == "**" else compiled


def _match(parts: Sequence[re.Pattern[str] | None], names: Sequence[str]) -> bool:
    part = name = 0
    again: tuple[int, int] | None = None  # where to go on when the last `**` takes one name more
    while name < len(names):
        wanted = parts[part] if part < len(parts) else _NOTHING
        if wanted is None:
            again, part = (part + 1, name), part + 1
        elif wanted.fullmatch(names[name]):
            part, name = part + 1, name + 1
        elif again:
            again = again[0], again[1] + 1
            part, name = again
        else:
            return False
    return all(wanted is None for wanted in parts[part:])


def _regex(pattern: str) -> str:
    """The regular expression of a pattern without slashes; a broken one matches nothing, as in git."""
    pieces = [""]
    at = 0
    while at < len(pattern):
        sign, at = pattern[at], at + 1
        if sign == "*":
            pieces.append("")
        elif sign == "?":
            pieces[-1] += "."
        elif sign == "[":
            regex, at = _bracket(pattern, at)
            pieces[-1] += regex
        elif sign == "\\":
            pieces[-1] += re.escape(pattern[at]) if at < len(pattern) else _NEVER
            at += 1
        else:
            pieces[-1] += re.escape(sign)
    if len(pieces) == 1:
        return pieces[0]
    first, *middle, last = pieces
    inner = "".join(f"(?>.*?{piece})" for piece in middle if piece)  # atomic: what it matched first is never given back
    return f"{first}{inner}.*{last}"


def _bracket(pattern: str, at: int) -> tuple[str, int]:
    """The regular expression of a bracket expression whose inside begins at `at`, and where it ends."""
    negated = pattern[at : at + 1] in {"!", "^"}
    at += negated
    signs: list[str] = []
    first = True
    while at < len(pattern) and (first or pattern[at] != "]"):
        first = False
        known = _CLASS.match(pattern, at)
        if known:
            signs += [re.escape(sign) for sign in _CLASSES.get(known[1], "")]
            at = known.end()
            continue
        low, at = _sign(pattern, at)
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in {"]", ""}:
            high, at = _sign(pattern, at + 1)
            signs += [f"{re.escape(low)}-{re.escape(high)}"] if low <= high else []
        else:
            signs.append(re.escape(low))
    if at >= len(pattern):
        return _NEVER, at
    inside = "".join(signs)
    return (f"[{'^' if negated else ''}{inside}]" if inside else "." if negated else _NEVER), at + 1


def _sign(pattern: str, at: int) -> tuple[str, int]:
    """A sign inside brackets, escaped or not."""
    if pattern[at] == "\\" and at + 1 < len(pattern):
        at += 1
    return pattern[at], at + 1
