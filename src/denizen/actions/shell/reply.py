"""The commands of a reply: those that a person who reads it sees there (docs/actions.md)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from denizen.actions.shell.commands import PROSE
from denizen.actions.shell.splitting import WHOLLY_QUOTED, Word, WordSplitter

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
_COMMAND_LINE = re.compile(rf"^[ \t]*+\$\({_NAME.pattern}", re.MULTILINE)
_LINE_END = re.compile(r"[ \t\r.,:;]*+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One `$(name …)`: `body` is what follows the name, `words` the same as words (but for prose).

    `start` and `end` are its place in the reply.
    """

    name: str
    body: str
    words: Sequence[Word]
    start: int
    end: int


@dataclass(slots=True)
class ShellReply:
    """What was found. `prose` is the text around the commands.

    `claimed` is where the reply begins to make outputs up (-1: nowhere). `unclosed` names a command without an end,
    `quoted` one that comes after quoted outputs with no command before them: neither is run, nor what follows.
    """

    commands: list[ShellCommand] = field(default_factory=list)
    prose: str = ""
    claimed: int = -1
    unclosed: str = ""
    quoted: str = ""

    @property
    def acts(self) -> bool:
        """Whether there is a command, or what was meant as one."""
        return bool(self.commands or self.unclosed or self.quoted)


def read_reply(text: str) -> ShellReply:
    """The commands of a reply, in order; linear in its length, whatever it holds."""
    if "$(" not in text:
        return ShellReply(prose=text)
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self.reply = ShellReply()
        self._text = text
        self._words = WordSplitter(text)
        self._prose: list[str] = []
        self._since = 0  # up to here the text is in the prose, or a command
        self._line_end = -1  # of the line that was looked at last
        self._fresh = False  # nothing but blanks comes after the last command

    def read(self) -> ShellReply:
        thought = _THOUGHT.match(self._text)
        at = self._since = thought.end() if thought else 0
        while at >= 0 and (mark := _MARK.search(self._text, at)):
            self._fresh &= not self._text[at : mark.start()].strip(" \t\r\n.,;")
            match mark.lastgroup:
                case "fence":
                    at = self._fence(mark)
                case "ticks" | "line" as kind:
                    at = self._code(mark, mark[kind])
                case "output":  # made up where a command came before, else quoted
                    if self.reply.commands:
                        self.reply.claimed = mark.start()
                    elif following := _COMMAND_LINE.search(self._text, mark.end()):
                        self.reply.claimed, self.reply.quoted = mark.start(), following["name"]
                    break
                case "quote":
                    at = self._end_of_line(mark.end())
                case _:
                    command = self._command_at(mark.start())
                    if command:
                        at = self._add([command], command.start, command.end)
                    else:
                        at = -1 if self.reply.unclosed else mark.end()
        self._prose.append(self._text[self._since : self.reply.claimed if self.reply.claimed >= 0 else None])
        self.reply.prose = "".join(self._prose).strip()
        return self.reply

    def _add(self, commands: Sequence[ShellCommand], start: int, end: int) -> int:
        """Where to read on after the commands; -1: nowhere, as what follows is given out as their output."""
        self.reply.commands += commands
        self._prose.append(self._text[self._since : start])
        self._since = end
        self._fresh = True
        if _CLAIM.match(self._text, end):
            self.reply.claimed = end
            return -1
        return end

    def _command_at(self, start: int) -> ShellCommand | None:
        """The command that begins there; None: none does, or it has no end."""
        match = _NAME.match(self._text, start + 2) if self._text.startswith("$(", start) else None
        if match is None:
            return None
        name, begin = match["name"], match.end()
        words, end = (list[Word](), self._end_of_prose(begin)) if name in PROSE else self._words.read(begin)
        if end < 0 and name == "done":  # the answer goes on to the end of the reply
            return ShellCommand(name, self._text[begin:].rstrip().removesuffix(")"), [], start, len(self._text))
        if end < 0:
            self.reply.unclosed = name
            return None
        return ShellCommand(name, self._text[begin:end], words, start, end + 1)

    def _end_of_prose(self, begin: int) -> int:
        """Where the parenthesis is that closes the command; -1: nowhere.

        Parentheses balance, but for those in a pair of double quotes or backticks on one line, and escaped ones. Where
        the text goes on and ends with a parenthesis too many (`$(done 1) read 2) write)`), that one closes.
        """
        text = self._text
        if _QUOTED_FIRST.match(text, begin):
            return self._words.read(begin)[1]
        depth, at = 0, begin
        while depth >= 0 and (piece := _PROSE_PIECE.match(text, at)):
            depth += {"(": 1, ")": -1}.get(piece["paren"] or "", 0)
            at = piece.end()
        if depth >= 0:
            return -1
        following = text.find("$(", at)
        rest = text[at : following if following > 0 else len(text)].rstrip()
        runs_on = rest.endswith(")") and rest.count(")") > rest.count("(")
        return at - 1 + len(rest) if runs_on else at - 1

    def _fence(self, mark: re.Match[str]) -> int:
        """A fence of nothing but commands is as if it weren't there; no other is looked into."""
        fence = mark["fence"]
        closing = re.compile(rf"^[ \t]*+{fence[0]}{{{len(fence)},}}+[ \t\r]*+$", re.MULTILINE)
        commands, end = self._only_commands(mark.end(), closing)
        if self.reply.unclosed:
            return -1
        if end >= 0:
            return self._add(commands, mark.start(), end)
        if self._fresh:
            self.reply.claimed = mark.start()
            return -1
        closed = closing.search(self._text, commands[-1].end if commands else mark.end())
        return closed.end() if closed else -1

    def _only_commands(self, at: int, closing: re.Pattern[str]) -> tuple[list[ShellCommand], int]:
        """The commands that a fence begins with, and where it ends, -1 where it holds anything else."""
        commands: list[ShellCommand] = []
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
            inner = read_reply(self._text[mark.end() : closed.start()])
            if inner.commands and not (inner.prose or inner.unclosed or inner.claimed >= 0):
                moved = [
                    replace(each, start=each.start + mark.end(), end=each.end + mark.end()) for each in inner.commands
                ]
                return self._add(moved, mark.start(), closed.end())
        return closed.end()

    def _end_of_line(self, at: int) -> int:
        if self._line_end < at:
            end = self._text.find("\n", at)
            self._line_end = len(self._text) if end < 0 else end
        return self._line_end


def plain_prose(prose: str) -> str:
    """The prose as it is meant: an escaped parenthesis without its like loses the backslash."""
    prose = prose.strip()
    return prose if prose.count("\\(") == prose.count("\\)") else re.sub(r"\\([()])", r"\1", prose)
