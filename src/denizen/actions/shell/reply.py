"""The commands of a reply: those that a person who reads it sees there (documented in docs/actions.md)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from denizen.actions.shell.commands import PROSE
from denizen.actions.shell.words import WHOLLY_QUOTED, Word, Words

_MARK = re.compile(
    r"""
      ^[ \t]*+(?:(?:[-*+]|\d{1,3}[.)])[ \t]++)?+(?P<fence>`{3,}+|~{3,}+)[^`\n]*+$
    | ^[ \t]*+(?P<quote>>)
    | ^[ \t]*+(?P<output>\[\d{1,3}\][ \t]*+\$[ \t])
    | ^[ \t]*+(?:(?:[-*+]|\d{1,3}[.)])[ \t]++)?+(?P<line>`{1,2}+(?!`))
    | (?P<ticks>`++)
    | (?P<command>(?<![A-Za-z0-9_"'`=\\$@])\$\()
    """,
    re.VERBOSE | re.MULTILINE,
)
_PROSE_PIECE = re.compile(
    r"""
      \\[()\\]
    | "(?:\\[^\n]|[^"\\\n$]|\$(?!\())*+"
    | `[^`\n]++`
    | (?P<paren>[()])
    | [^\\"`()]++
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED_FIRST = re.compile(rf"\s*+(?:{WHOLLY_QUOTED.pattern})\s*+(?=\)|--\w)", re.DOTALL)
_NAME = re.compile(r"\s*+(?P<name>[a-z][a-z0-9_-]{0,63})(?=[\s)])")
_CLAIM = re.compile(
    r"""
    [ \t.,;]*+\n\s*+>
  | [\s.,;]*+
    (?: [*_#\ ]*+(?:(?:command|tool|simulated|expected)\s)?(?:outputs?|results?|stdout|response)
        (?:\s(?:of|from|for)\s[^\n:]{1,80})?[*_]*+:
      | </?(?:outputs?|results?|stdout|response|function_results?|tool_(?:response|results?|outputs?))>
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_THOUGHT = re.compile(r"\s*+<(think|thinking|thought|reasoning)>(?s:.*?)</\1>")
_BLANKS = re.compile(r"\s*+")
_COMMENT = re.compile(r"[ \t]*+\#[^\n]*+")
_COMMAND_LINE = re.compile(r"^[ \t]*+\$\((?P<name>[a-z][a-z0-9_-]{0,63})(?=[\s)])", re.MULTILINE)
_LINE_END = re.compile(r"[ \t\r.,:;]*+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Command:
    """One `$(name …)`: `body` is what stands behind the name, `words` the same as words (those of its body alone).

    `start` and `end` are where it stands in the reply.
    """

    name: str
    body: str
    words: Sequence[Word]
    start: int
    end: int


@dataclass(slots=True)
class Reply:
    """What was found. `prose` is the text beside the commands.

    `claimed` is where the reply begins to make outputs up (-1: nowhere). `unclosed` names a command without an end,
    `quoted` one behind a quotation of outputs that no command came before: neither is run, nor what follows.
    """

    commands: list[Command] = field(default_factory=list)
    prose: str = ""
    claimed: int = -1
    unclosed: str = ""
    quoted: str = ""

    @property
    def acts(self) -> bool:
        """Whether there is a command, or what was meant as one."""
        return bool(self.commands or self.unclosed or self.quoted)


def read_reply(text: str) -> Reply:
    """The commands of a reply, in order; linear in its length, whatever it holds."""
    if "$(" not in text:
        return Reply(prose=text)
    return _Reading(text).reply


class _Reading:
    def __init__(self, text: str) -> None:
        self.reply = Reply()
        self._text = text
        self._words = Words(text)
        self._beside: list[str] = []
        self._told = 0  # up to here the text is a command, or beside one
        self._line_end = -1  # of the line that was looked at last
        self._fresh = False  # nothing but blanks stands behind the last command
        self._read()
        end = self.reply.claimed if self.reply.claimed >= 0 else len(text)
        self._beside.append(text[self._told : end])
        self.reply.prose = "".join(self._beside).strip()

    def _read(self) -> None:
        thought = _THOUGHT.match(self._text)
        at = self._told = thought.end() if thought else 0
        while at >= 0 and (mark := _MARK.search(self._text, at)):
            self._fresh &= not self._text[at : mark.start()].strip(" \t\r\n.,;")
            at = self._take(mark.lastgroup or "", mark)

    def _take(self, kind: str, mark: re.Match[str]) -> int:
        """Take a mark in; where to look for the next one, -1: there is no more to read."""
        match kind:
            case "fence":
                return self._fence(mark)
            case "ticks" | "line":
                return self._code(mark, mark[kind])
            case "output":
                return self._output(mark)
            case "quote":
                return self._end_of_line(mark.end())
            case _:
                return self._command(mark)

    def _command(self, mark: re.Match[str]) -> int:
        command = self._command_at(mark.start())
        if command is None:
            return -1 if self.reply.unclosed else mark.end()
        self._found([command], command.start, command.end)
        return self._behind(command.end)

    def _found(self, commands: Sequence[Command], start: int, end: int) -> None:
        self.reply.commands += commands
        self._beside.append(self._text[self._told : start])
        self._told = end
        self._fresh = True

    def _behind(self, end: int) -> int:
        """Where to read on behind commands: nowhere, if what follows is given out as their output."""
        if not _CLAIM.match(self._text, end):
            return end
        self.reply.claimed = end
        return -1

    def _command_at(self, start: int) -> Command | None:
        """The command that begins there; None: none does, or it has no end."""
        name = _NAME.match(self._text, start + 2) if self._text.startswith("$(", start) else None
        if name is None:
            return None
        begin, words = name.end(), list[Word]()
        if name["name"] in PROSE:
            end = _end_of_prose(self._text, begin, self._words)
        else:
            words, end = self._words.read(begin)
        if end < 0 and name["name"] == "done":
            return _without_end(self._text, begin, start)
        if end < 0:
            self.reply.unclosed = name["name"]
            return None
        return Command(name["name"], self._text[begin:end], words, start, end + 1)

    def _fence(self, mark: re.Match[str]) -> int:
        """A fence of nothing but commands is as if it weren't there; no other is looked into."""
        fence = mark["fence"]
        closing = re.compile(rf"^[ \t]*+{fence[0]}{{{len(fence)},}}+[ \t\r]*+$", re.MULTILINE)
        commands, end = self._only_commands(mark.end(), closing)
        if self.reply.unclosed:
            return -1
        if end >= 0:
            self._found(commands, mark.start(), end)
            return self._behind(end)
        if self._fresh:
            self.reply.claimed = mark.start()
            return -1
        at = max((command.end for command in commands), default=mark.end())
        closed = closing.search(self._text, at)
        return closed.end() if closed else -1

    def _only_commands(self, at: int, closing: re.Pattern[str]) -> tuple[list[Command], int]:
        """The commands that a fence begins with, and where it ends, -1 where it holds anything else."""
        commands: list[Command] = []
        while blanks := _BLANKS.match(self._text, at):
            line = self._text.rfind("\n", at, blanks.end()) + 1
            if line and (closed := closing.match(self._text, line)):
                return commands, closed.end() if commands else -1
            if line and (comment := _COMMENT.match(self._text, line)):
                at = comment.end()
                continue
            if blanks.end() == len(self._text):
                return commands, len(self._text) if commands else -1
            command = self._command_at(blanks.end())
            if command is None:
                break
            commands.append(command)
            at = command.end
        return commands, -1

    def _code(self, mark: re.Match[str], ticks: str) -> int:
        """Code in a line isn't looked into, unless it is a line of commands."""
        closing = re.compile(rf"(?<!`)`{{{len(ticks)}}}(?!`)")
        closed = closing.search(self._text, mark.end(), self._end_of_line(mark.end()))
        if closed is None:
            return mark.end()
        if mark.lastgroup == "line" and _LINE_END.match(self._text, closed.end()):
            commands = _commands_of(self._text[mark.end() : closed.start()], mark.end())
            if commands:
                self._found(commands, mark.start(), closed.end())
                return self._behind(closed.end())
        return closed.end()

    def _output(self, mark: re.Match[str]) -> int:
        """An output is made up where a command came before, else it is quoted."""
        if self.reply.commands:
            self.reply.claimed = mark.start()
        elif behind := _COMMAND_LINE.search(self._text, mark.end()):
            self.reply.claimed, self.reply.quoted = mark.start(), behind["name"]
        return -1

    def _end_of_line(self, at: int) -> int:
        if self._line_end < at:
            end = self._text.find("\n", at)
            self._line_end = len(self._text) if end < 0 else end
        return self._line_end


def _commands_of(code: str, offset: int) -> list[Command]:
    """The commands that the code is made of; none where it holds anything else."""
    found = read_reply(code)
    if found.prose or found.unclosed or found.claimed >= 0:
        return []
    return [replace(command, start=command.start + offset, end=command.end + offset) for command in found.commands]


def _without_end(text: str, begin: int, start: int) -> Command:
    """The answer that goes on to the end of the reply."""
    body = text[begin:].rstrip()
    return Command("done", body.removesuffix(")"), [], start, len(text))


def _end_of_prose(text: str, begin: int, words: Words) -> int:
    """Where the parenthesis stands that closes the command; -1: nowhere.

    Parentheses balance, but for those in a pair of double quotes or backticks on one line, and escaped ones. Where the
    text goes on and ends with a parenthesis too many (`$(done 1) read 2) write)`), that one closes.
    """
    if _QUOTED_FIRST.match(text, begin):
        return words.read(begin)[1]
    depth, at = 0, begin
    while piece := _PROSE_PIECE.match(text, at):
        if piece["paren"]:
            depth += 1 if piece["paren"] == "(" else -1
            if depth < 0:
                return _runs_on(text, at)
        at = piece.end()
    return -1


def _runs_on(text: str, close: int) -> int:
    following = text.find("$(", close)
    rest = text[close + 1 : following if following > 0 else len(text)].rstrip()
    runs_on = rest.endswith(")") and rest.count(")") > rest.count("(")
    return close + len(rest) if runs_on else close


def plain_prose(prose: str) -> str:
    """The prose as it is meant: an escaped parenthesis without its like loses the backslash."""
    prose = prose.strip()
    return prose if prose.count("\\(") == prose.count("\\)") else re.sub(r"\\([()])", r"\1", prose)
