"""Taking a shell command apart, as far as that can be done without running it."""

import re
from collections.abc import Iterator, Sequence
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
_RUNNERS = frozenset(
    {
        *(
            "!",
            "bash",
            "builtin",
            "busybox",
            "chroot",
            "command",
            "coproc",
            "dash",
            "do",
            "doas",
            "elif",
            "else",
            "env",
        ),
        *("eval", "exec", "find", "flock", "if", "ionice", "nice", "nohup", "parallel", "script", "setsid", "sh"),
        *("stdbuf", "strace", "sudo", "su", "taskset", "then", "time", "timeout", "trap", "unshare", "until", "watch"),
        *("while", "xargs", "zsh"),
    }
)
"""Words behind which another program may stand."""
_BEFORE = re.compile(r"\w+(?:\[[^]]*\])?\+?=|[012&]*[<>]")
"""How what may stand before a program begins: a variable's value, a redirection."""
_MOST_READINGS = 12
"""Words at the beginning of a command that are taken for what stands before the program that matters."""
_QUOTING = re.compile(r"""\$(?=['"])|['"\\]""")
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
    joined = command.replace("\\\n", "")
    return [piece.strip() for piece in _SEPARATORS.split(joined) if piece.strip()]


def is_compound(text: str) -> bool:
    """Whether it holds a sign that parts commands, quoted or not."""
    return bool(_SEPARATORS.search(text))


def readings(text: str) -> Iterator[str]:
    """What a simple command comes to: the program that matters first, without its place, its options, and quotes.

    Of one that may run another (`sudo -u x rm y`, `A=1 rm y`) that other, wherever in it that may begin.
    """
    words = _QUOTING.sub("", text).split()
    for start in range(min(len(words), _MOST_READINGS)):
        yield from _without_options(words[start].rpartition("/")[2], words[start + 1 :])
        if start == 0 and not _runs_another(words[0]):
            return


def _runs_another(word: str) -> bool:
    return word.rpartition("/")[2] in _RUNNERS or _BEFORE.match(word) is not None


def _without_options(program: str, words: Sequence[str]) -> Iterator[str]:
    """The command, and what is left of it without the options that stand first, each with a value or without."""
    yield " ".join([program, *words])
    for _ in range(_MOST_READINGS):
        if not words or not words[0].startswith("-"):
            return
        has_value = len(words) > 1 and not words[1].startswith("-")
        yield " ".join([program, *words[1:]])
        if has_value:
            yield " ".join([program, *words[2:]])
        words = words[2 if has_value else 1 :]


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
