"""The commands that a shell would run, read from a script's syntax tree."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice, pairwise, product
from typing import TYPE_CHECKING, NamedTuple

from denizen.config.pattern import pattern

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

UNKNOWN = "\0"
"""A part of a word that is only known when the script runs."""

_MAX_CHARS = 200_000
_MAX_OPERATORS = 1000
"""Characters and operators of a script that is parsed: beyond, a parser takes seconds."""
_MAX_COMMANDS = 1000
_MAX_TEXTS = 64
"""Values of a word's variables that are tried."""
_SHELLS = pattern(r"(?:ba|da|k|z|a)?sh")
_AWK = pattern(r"[gmn]?awk")
_AWK_RUNS = pattern(
    r"""\bsystem\s*\(|@\w+\s*\(|(?<!\|)\|&?\s*(?:"|getline)|"\s*\|(?!\|)|print[^;{}\n]*(?<!\|)\|(?!\|)"""
)
"""Constructs of awk that run a command."""
_WRAPPERS = pattern(
    r"busybox|builtin|chroot|chrt|command|coproc|doas|env|exec|flock|ionice|nice|nohup|npx|parallel|prlimit|runuser"
    r"|setarch|setsid|stdbuf|strace|sudo|systemd-run|taskset|time|timeout|unshare|watch|xargs"
)
"""Programs that run a command in their arguments."""
_NO_PROGRAM = pattern(r"[\d.]+[smhd]?|\w+\+?=.*|[^\w\0]+", re.DOTALL)
"""An argument of these that can't be the program: a number, an assignment, punctuation."""
_SETTERS = frozenset({"read", "mapfile", "readarray", "getopts", "eval", "source", ".", "let", "unset"})
"""Commands after which a variable may be other than what the script assigns."""
_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command", "variable_assignment"})
_PIECES = frozenset({"string", "concatenation", "command_name"})
_GLOB = pattern(r"^(?:[*?]+|\[[^]]*\])+(?=\w)|(?<=[\w./*?\]-])(?:[*?]|\[[^]]*\])")
_FOLDER = pattern(r'"?\$\{?(\w+)\}?"?/')
"""A program's path that begins with a variable: where the script doesn't set that, the program is known."""
_BACKQUOTED = pattern(r"(?<!\\)`((?:[^`\\]|\\.)*)`", re.DOTALL)
_BRACES = pattern(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")
_ESCAPE = pattern(r"\\(?:x([\da-fA-F]{1,2})|u([\da-fA-F]{1,4})|U([\da-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPE_NAMES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}

Values = Mapping[str, Sequence[str]] | None
"""The possible values of variables; None if a command may have set any."""


class UnclearScript(Exception):
    """The script can't be parsed, or is too large."""


class ScriptCommand(NamedTuple):
    """A command as written, its words without quotes, and whether another command runs it (`sh -c`, `xargs`).

    Assignments and redirections have no words.
    """

    text: str
    words: str
    inner: bool = False


_ANY_COMMAND = ScriptCommand(UNKNOWN, UNKNOWN, inner=True)


def commands_in(script: str) -> list[ScriptCommand]:
    """Each command that the script may run, also in substitutions and in the arguments of `sh -c` or `xargs`.

    What the script doesn't say is `UNKNOWN`; a command that is `UNKNOWN` alone may be any. Raises UnclearScript.
    """
    try:
        found = [*islice(_commands(script), _MAX_COMMANDS + 1)]
    except RecursionError:
        raise UnclearScript from None
    if len(found) > _MAX_COMMANDS:
        raise UnclearScript
    return [*dict.fromkeys(found)]


@cache
def _parser() -> "Parser":
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _commands(script: str) -> Iterator[ScriptCommand]:
    source = script.replace("\\\n", "")
    if len(source) > _MAX_CHARS or len(re.findall("[|&]", source)) > _MAX_OPERATORS:
        raise UnclearScript
    root = _parser().parse(source.encode("utf-8", "replace")).root_node
    if root.has_error:
        raise UnclearScript
    nodes = [*_walk(root)]
    values = _known_values(nodes)
    for node in nodes:
        text = _text(node)
        for backquoted in _backquoted(node):
            yield from _script_commands(backquoted)
        if node.type == "command":
            for words in _words(node, values):
                yield ScriptCommand(text, " ".join(words))
                yield from _inner_commands(words)
        elif node.type in _COMMANDS or (node.type == "redirected_statement" and node.children[0].type == "command"):
            yield ScriptCommand(text, "")


def _walk(root: "Node") -> Iterator["Node"]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.named_children))


def _text(node: "Node") -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _backquoted(node: "Node") -> Sequence[str]:
    """The commands in backquotes that the tree has as text: in `${…}`, in a heredoc, and in other backquotes."""
    text = _text(node)
    is_quoted = node.type == "heredoc_body" and _is_literal(node)
    is_nested = node.type == "command_substitution" and "\\" in text
    if is_quoted or not (is_nested or node.type in {"expansion", "heredoc_body"}):
        return []
    return [re.sub(r"\\([\\$`])", r"\1", each) for each in _BACKQUOTED.findall(text)]


def _is_literal(body: "Node") -> bool:
    """Whether a heredoc's end is quoted, so that nothing in it is expanded."""
    start = body.prev_named_sibling
    while start and start.type != "heredoc_start":
        start = start.prev_named_sibling
    return start is not None and not _text(start).isidentifier()


# Words


def _known_values(nodes: Sequence["Node"]) -> Values:
    """The values of the variables that are set only to what the script says literally."""
    values: dict[str, list[str]] = {}
    for node in nodes:
        text = _text(node)
        if node.type == "command":
            words = [word for words in _words(node, {}) for word in words]
            if not _SETTERS.isdisjoint({*words} - {"."} | {*words[:2]}) or (
                "printf" in words and any(word[:2] == "-v" for word in words)
            ):
                return None
        elif (node.type == "expansion" and "=" in text) or re.match(r"(?:declare|local|typeset)\b.* -\w*n", text):
            return None  # `${X:=…}`, `declare -n`
        elif node.type == "for_statement":
            listed = [word for value in node.children_by_field_name("value") for word in _texts(value, {})]
            values.setdefault(_text(node.named_children[0]), []).extend(listed or [UNKNOWN])
        elif node.type == "variable_assignment":
            name, sign, rest = text.partition("=")
            value = node.child_by_field_name("value")
            known = [""] if not rest else _texts(value, {}) if value and sign and name.isidentifier() else [UNKNOWN]
            values.setdefault(re.split(r"\[|\+", name)[0], []).extend(known)
    return values


def _words(command: "Node", values: Values) -> Iterator[list[str]]:
    """The command's words, once for each combination of its variables' values."""
    prefixes = ("variable_assignment", "_redirect")
    given = [node for node in command.named_children if not node.type.endswith(prefixes)]
    for words in _combined([_texts(node, values) for node in given]):
        if not words:
            continue
        program = UNKNOWN if words[0][:1] in {"*", "?"} else words[0]
        folder = _FOLDER.match(_text(given[0]))
        if folder and values is not None and folder[1] not in values:
            program = program.removeprefix(UNKNOWN)
        yield [program, *words[1:]]


def _combined(texts: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    count = 1
    for each in texts:
        count *= len(each)
    return product(*(texts if count <= _MAX_TEXTS else [each if len(each) == 1 else [UNKNOWN] for each in texts]))


def _texts(node: "Node", values: Values) -> Sequence[str]:
    """The possible values of a word after the shell's expansion."""
    text = _text(node)
    match node.type:
        case "raw_string":
            return [text[1:-1]]
        case "ansi_c_string":
            return [_ESCAPE.sub(_unescaped, text[2:-1])]
        case "simple_expansion":
            return (values or {}).get(text[1:], [UNKNOWN])
        case "expansion":
            return (values or {}).get(text[2:-1], [UNKNOWN])
        case "process_substitution":
            return ["/dev/fd/63"]
        case "string_content":
            return [re.sub(r"\\([$`\"\\])", r"\1", text)]
        case "concatenation" if _BRACES.search(text) or _GLOB.match(text):
            return [UNKNOWN]
        case kind if kind in _PIECES:
            return ["".join(pieces) for pieces in _combined(_pieces(node, values))]
        case _ if node.named_children or node.type.endswith("_substitution"):
            return [UNKNOWN]
        case _:
            return [re.sub(r"\\(.)", r"\1", _GLOB.sub(UNKNOWN, text))]


def _pieces(node: "Node", values: Values) -> list[Sequence[str]]:
    """The parts of a word, with the blanks between them that the tree leaves out."""
    found: list[Sequence[str]] = []
    whole, end = node.text or b"", 0
    for child in node.children:
        begin = child.start_byte - node.start_byte
        found.append([whole[end:begin].decode("utf-8", "replace")])
        found.append(_texts(child, values) if child.is_named else [_text(child).strip('"')])
        end = child.end_byte - node.start_byte
    return found if node.children else [[_text(node)]]


def _unescaped(match: re.Match[str]) -> str:
    *codes, octal, other = match.groups()
    if code := next(filter(None, codes), ""):
        return chr(min(int(code, 16), 0x10FFFF))
    return chr(int(octal, 8)) if octal else _ESCAPE_NAMES.get(other, other)


# Programs that run their arguments


def _inner_commands(words: Sequence[str]) -> Iterator[ScriptCommand]:
    """The commands that a command runs out of its arguments."""
    program, args = words[0].rpartition("/")[2], words[1:]
    if _SHELLS.fullmatch(program):
        yield from _shell_commands(args)
    elif program in {"eval", "trap"}:
        yield from _script_commands(" ".join(args if program == "eval" else args[:1]))
    elif program in {"source", "."}:
        if any(UNKNOWN in name or name.startswith("/dev/") for name in args[:1]):
            yield _ANY_COMMAND
    elif _AWK.fullmatch(program):
        program_texts = [
            word for option, word in pairwise(["", *args]) if option not in {"-F", "-v"} and word[:1] != "-"
        ]
        if program_texts[:1] == [UNKNOWN] or any(map(_AWK_RUNS.search, program_texts)):
            yield _ANY_COMMAND
    elif program == "find":
        for place, word in enumerate(args):
            if re.fullmatch("-(?:exec|ok)(?:dir)?", word):
                yield from _command([each.replace("{}", UNKNOWN) for each in args[place + 1 :]])
    elif _WRAPPERS.fullmatch(program) and args[:1] not in (["-v"], ["-V"]):
        takes_input = program in {"xargs", "parallel"}
        mark = next((word[2:] or after for word, after in pairwise([*args, ""]) if word[:2] == "-I"), "") or "{}"
        for inner in _wrapped(args):
            yield from _command([*(each.replace(mark, UNKNOWN) for each in inner), UNKNOWN] if takes_input else inner)


def _command(words: Sequence[str]) -> Iterator[ScriptCommand]:
    if words:
        yield ScriptCommand(" ".join(words), " ".join(words), inner=True)
        yield from _inner_commands(words)


def _wrapped(args: Sequence[str]) -> Iterator[Sequence[str]]:
    """The possible starts of the command in a wrapper's arguments: a word after an option may also be its value."""
    for place, word in enumerate(args):
        if word.startswith("-") or _NO_PROGRAM.fullmatch(word):
            continue
        yield args[place:]
        if not (place and args[place - 1].startswith("-")):
            return


def _shell_commands(args: Sequence[str]) -> Iterator[ScriptCommand]:
    """The commands of `sh` with these arguments: script files aren't read, standard input is unknown."""
    operands = [word for word in args if not word.startswith(("-", "+"))]
    options = args[: args.index(operands[0])] if operands else args
    if operands and any(re.fullmatch(r"-\w*c\w*", word) for word in options):
        yield from _script_commands(operands[0])
    elif not operands or operands[0].startswith("/dev/") or "-s" in args:
        yield _ANY_COMMAND


def _script_commands(script: str) -> Iterator[ScriptCommand]:
    try:
        for command in [_ANY_COMMAND] if UNKNOWN in script else _commands(script):
            yield command._replace(inner=True)
    except UnclearScript:
        yield _ANY_COMMAND
