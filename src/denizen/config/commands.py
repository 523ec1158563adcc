"""Taking a shell command apart, as far as that can be done without running it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<blank>[ \t]+)
    | (?P<ignored>(?:[012]?>&[012]|(?:[012]?>>?|&>|<)[ ]?/dev/null)(?![^\s;&|]))
    | (?P<end>&&|\|\||\|&|[;&|\n])
    | (?P<single>'[^']*')
    | (?P<double>"[^"\\$`]*")
    | (?P<escaped>\\\S)
    | (?P<plain>(?:[^\s'"\\$`<>(){};&|\#\x00-\x1f]|(?<=[\w./-])\#)+)
    """,
    re.VERBOSE,
)
_RESERVED = re.compile(
    r"(?:!|\[\[|case|coproc|do|done|elif|else|esac|fi|for|function|if|select|then|time|until|while)(?!\S)"
)
_PREFIXES = re.compile(
    r"^(?:(?:!|builtin|command|do|doas|elif|else|env|exec|if|nice|nohup|sudo|then|time|until|while|xargs|\w+=\S*)\s+)+"
)
_SEPARATORS = re.compile(r"[;&|\n(){}`]|\$\(|[<>]\(")


@dataclass(frozen=True, slots=True)
class Simple:
    """One program with its arguments: as it is written, and without quotes."""

    text: str
    unquoted: str


def simple_commands(command: str) -> list[Simple] | None:
    """The simple commands that a shell would run; None when that isn't certain.

    Understood are words, quotes, `;`, `&`, `|`, `&&`, `||`, new lines and redirections to /dev/null or between standard
    output and error. Not understood is whatever else could run or write: substitutions, variables, other redirections,
    groups, keywords, comments.
    """
    found: list[Simple] = []
    text = unquoted = ""
    for kind, token in _tokens(f"{command}\n"):
        if kind == "end":
            if text.strip():
                found.append(Simple(text.strip(), unquoted.strip()))
            text = unquoted = ""
        elif kind == "unknown":
            return None
        elif kind != "ignored":
            text += token
            unquoted += _unquoted(kind, token)
    return None if any(_RESERVED.match(part.text) for part in found) else found


def fragments(command: str) -> list[str]:
    """What may be simple commands in one that isn't understood: cut crudely, also inside quotes."""
    return [piece.strip() for piece in _SEPARATORS.split(command) if piece.strip()]


def is_compound(text: str) -> bool:
    """Whether it holds a sign that parts commands, quoted or not."""
    return bool(_SEPARATORS.search(text))


def without_prefixes(text: str) -> str:
    """A simple command without `sudo`, `then`, `A=1` and their like before the program that matters."""
    return _PREFIXES.sub("", text)


def _tokens(command: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(command):
        match = _TOKEN.match(command, position)
        if match is None:
            yield "unknown", command[position:]
            return
        yield match.lastgroup or "unknown", match[0]
        position = match.end()


def _unquoted(kind: str, token: str) -> str:
    if kind in {"single", "double"}:
        return token[1:-1]
    return token[1:] if kind == "escaped" else token
