"""File patterns as git reads them: `*.py` anywhere, `src/**/*.py` from the top, `build/` for folders alone.

Matching takes time in proportion to the name and the pattern, whatever a hostile pattern looks like: a repository's own
`.gitignore` must not be able to halt us. (pathspec's regular expressions take exponential time, and differ from git.)
"""

import re
import string
from collections.abc import Sequence

from denizen.errors import ToolRefused

MAX_ALTERNATIVES = 200  # patterns that braces may stand for

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
_IN_SET = r"(?:\\.|[^\]\\])"
_TOKEN = re.compile(
    rf"""(?P<slash>\\?/) | (?P<star>\*) | (?P<any>\?) | \\(?P<escaped>.)
    | \[(?P<negated>[!^]?)(?P<set>(?>(?:\](?:-{_IN_SET})?)?(?:\[:\w+:\]|{_IN_SET}(?:-{_IN_SET})?)*))\]
    | (?P<broken>\[.*|\\) | (?P<plain>[^/*?\\[]+)""",
    re.DOTALL | re.VERBOSE,
)
_SET_ITEM = re.compile(r"\[:(?P<class>\w+):\]|(?P<low>\\?.)(?:-(?P<high>\\?.))?", re.DOTALL)
_NEVER = "(?!)"
_ANY_PARTS = ["", "", ""]  # `**`


class Glob:
    """One pattern. Names are given as their parts, from where the pattern counts."""

    def __init__(self, pattern: str) -> None:
        self._folders_only = pattern.endswith("/")
        pattern = pattern.removesuffix("/")
        self._anywhere = "/" not in pattern
        self._parts = _compile(pattern.removeprefix("/"))

    def matches(self, names: Sequence[str], *, is_folder: bool) -> bool:
        """Whether it is the entry of these names, not one of those above it."""
        if self._folders_only and not is_folder:
            return False
        parts = self._parts
        if self._anywhere:
            return parts[0] is None or parts[0].fullmatch(names[-1]) is not None
        part = name = 0
        again: tuple[int, int] | None = None  # where to go on when the last `**` takes one name more
        while name < len(names):
            wanted = parts[part] if part < len(parts) else None
            if part < len(parts) and wanted is None:
                again, part = (part + 1, name), part + 1
            elif wanted and wanted.fullmatch(names[name]):
                part, name = part + 1, name + 1
            elif again:
                again = again[0], again[1] + 1
                part, name = again
            else:
                return False
        return all(wanted is None for wanted in parts[part:])


def any_glob(pattern: str) -> list[Glob]:
    """The patterns that one with braces (`*.{ts,tsx}`) stands for. Raises ToolRefused for too many."""
    pending = [pattern.removeprefix("./")]
    done: list[Glob] = []
    while pending:
        one = pending.pop()
        braces = _BRACES.search(one)
        if braces is None:
            done.append(Glob(one))
        else:
            pending += [one[: braces.start()] + choice + one[braces.end() :] for choice in braces[1].split(",")]
        if len(pending) + len(done) > MAX_ALTERNATIVES:
            raise ToolRefused(f"the pattern stands for more than {MAX_ALTERNATIVES} others")
    return done


def _compile(pattern: str) -> Sequence[re.Pattern[str] | None]:
    """The pattern of each part of a name; None for any number of parts. A broken part matches nothing, as in git."""
    parts = [[""]]  # of each the regular expressions between its stars
    for token in _TOKEN.finditer(pattern):
        match token.lastgroup:
            case "slash":
                parts.append([""])
            case "star":
                parts[-1].append("")
            case "any":
                parts[-1][-1] += "."
            case "set":
                parts[-1][-1] += _set_regex(token["set"], negated=bool(token["negated"]))
            case "broken":
                parts[-1][-1] += _NEVER
            case _:
                parts[-1][-1] += re.escape(token["escaped"] or token["plain"])
    parts += [["", ""]] if parts[-1] == _ANY_PARTS else []  # `a/**` isn't `a` itself
    compiled: list[re.Pattern[str] | None] = []
    for first, *others in parts:
        regex = first
        if others:  # atomic groups: what they matched first is never given back
            regex += "".join(f"(?>.*?{piece})" for piece in others[:-1] if piece) + f".*{others[-1]}"
        compiled.append(None if [first, *others] == _ANY_PARTS else re.compile(regex, re.DOTALL))
    return compiled


def _set_regex(items: str, *, negated: bool) -> str:
    inside = ""
    for item in _SET_ITEM.finditer(items):
        if item["class"]:
            inside += re.escape(_CLASSES.get(item["class"], ""))
            continue
        low, high = item["low"][-1], (item["high"] or item["low"])[-1]
        if low <= high:
            inside += f"{re.escape(low)}-{re.escape(high)}"
    if not inside:
        return "." if negated else _NEVER
    return f"[{'^' if negated else ''}{inside}]"
