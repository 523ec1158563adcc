"""Splits a shell command into the simple commands that it runs."""

import re
from collections.abc import Iterator

import msgspec

from denizen.config.pattern import pattern
from denizen.config.shell_script import UNKNOWN, UnclearScript, commands_in

_TOKEN = pattern(
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
_RESERVED = pattern(
    r"(?:!|\[\[|case|coproc|do|done|elif|else|esac|fi|for|function|if|select|then|time|until|while)(?!\S)"
)
_RUNNERS = pattern(
    r"!|bash|builtin|busybox|chroot|chrt|command|coproc|dash|do|doas|elif|else|env|eval|exec|find|flock|if|ionice|nice"
    r"|nohup|npx|parallel|prlimit|runuser|script|setarch|setsid|sh|stdbuf|strace|sudo|su|systemd-run|taskset|then|time"
    r"|timeout|trap|unshare|until|watch|while|xargs|zsh"
)
"""Words after which another program may come."""
_BEFORE = pattern(r"\w+(?:\[[^]]*\])?\+?=|[012&]*[<>]")
"""Words that may come before a program: an assignment, or a redirection."""
_MAX_PREFIXES = 12
"""Words at the beginning of a command that may come before the program that matters."""
_GIT_VALUE = pattern("-[Cc]|--(?:git-dir|work-tree|namespace)")
"""Options of git that a value follows."""
_QUOTING = pattern(r"""\$(?=['"])|['"\\]""")
_SEPARATORS = pattern(r"[;&|\n(){}`]|\$\(|[<>]\(")


class SimpleCommand(msgspec.Struct, frozen=True):
    """One program with its arguments: as written, and without quotes. Another command runs an `inner` one."""

    text: str
    unquoted: str
    inner: bool = False

    def effective_commands(self) -> Iterator[str]:
        """The command without quotes, the program's folder and its options.

        Of a program that may run another (`sudo -u x rm y`, `A=1 rm y`) also that other, wherever it may begin.
        """
        words = _QUOTING.sub("", self.unquoted).split()
        for start in range(min(len(words), _MAX_PREFIXES)):
            if start and UNKNOWN in words[start]:
                continue
            program, rest = words[start].rpartition("/")[2], words[start + 1 :]
            yield " ".join([program, *rest])
            for _ in range(_MAX_PREFIXES):  # without the options that come first, each with a value or without
                if not rest or not rest[0].startswith("-"):
                    break
                has_value = len(rest) > 1 and not rest[1].startswith("-")
                if not (has_value and UNKNOWN in rest[1] and program == "git" and _GIT_VALUE.fullmatch(rest[0])):
                    yield " ".join([program, *rest[1:]])
                if has_value:
                    yield " ".join([program, *rest[2:]])
                rest = rest[2 if has_value else 1 :]
            if start == 0 and not _RUNNERS.fullmatch(program) and not _BEFORE.match(words[0]):
                return


def simple_commands(command: str) -> list[SimpleCommand] | None:
    """The simple commands that a shell would run; None when that isn't certain.

    Understood are words, quotes, `;`, `&`, `|`, `&&`, `||`, new lines and redirections to /dev/null or between standard
    output and error. Anything else that could run or write isn't understood: substitutions, variables, other
    redirections, groups, keywords, comments.
    """
    found: list[SimpleCommand] = []
    text = unquoted = ""
    command, position = f"{command}\n", 0
    while position < len(command):
        match = _TOKEN.match(command, position)
        if match is None:
            return None
        kind, token, position = match.lastgroup, match[0], match.end()
        if kind == "end":
            if text.strip():
                found.append(SimpleCommand(text.strip(), unquoted.strip()))
            text = unquoted = ""
        elif kind != "ignored":
            text += token
            unquoted += token[1:-1] if kind in {"single", "double"} else token[1:] if kind == "escaped" else token
    return None if any(_RESERVED.match(part.text) for part in found) else found


def possible_commands(command: str) -> list[SimpleCommand]:
    """The commands that a shell may run; a value that isn't known is `UNKNOWN`, also a whole command.

    Of a text that can't be parsed, all pieces that may be a command: it is cut at everything that could separate them,
    inside quotes too.
    """
    try:
        found = [SimpleCommand(each.text, each.words, each.inner) for each in commands_in(command)]
    except UnclearScript:
        pieces = [piece.strip() for piece in _SEPARATORS.split(command.replace("\\\n", "")) if piece.strip()]
        found = [*(SimpleCommand(piece, piece) for piece in pieces), SimpleCommand(UNKNOWN, UNKNOWN, inner=True)]
    return found or [SimpleCommand(command, command)]


def is_compound(text: str) -> bool:
    """Whether it has a character that separates commands, quoted or not."""
    return bool(_SEPARATORS.search(text))
