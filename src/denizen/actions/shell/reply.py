"""The commands of a reply: those that a person who reads it sees there (docs/actions.md)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from denizen.actions.shell.commands import PROSE
from denizen.actions.shell.splitting import WHOLLY_QUOTED, Word, WordSplitter
from denizen.config.pattern import pattern

_MARK = pattern(
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
_PROSE_PIECE = pattern(
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
_QUOTED_FIRST = pattern(rf"\s*+(?:{WHOLLY_QUOTED.pattern})\s*+(?=\)|--\w)", re.DOTALL)
_NAME = pattern(r"\s*+(?P<name>[a-z][a-z0-9_-]{0,63})(?=[\s)])")
_CLAIM = pattern(
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
_THOUGHT = pattern(r"\s*+<(think|thinking|thought|reasoning)>(?s:.*?)</\1>")
_BLANKS = pattern(r"\s*+")
_COMMENT = pattern(r"[ \t]*+\#[^\n]*+")
_COMMAND_LINE = pattern(rf"^[ \t]*+\$\({_NAME.pattern}", re.MULTILINE)
_LINE_END = pattern(r"[ \t\r.,:;]*+$", re.MULTILINE)


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


class ShellReply(msgspec.Struct):
    """The commands of a reply; `prose` is the text around them.

    `made_up_from` is where the reply begins to make outputs up (None: nowhere). `unclosed` names a command without an
    end, `quoted` one that comes after quoted outputs with no command before them: neither is run, nor what follows.
    """

    commands: list[ShellCommand] = msgspec.field(default_factory=list)
    prose: str = ""
    made_up_from: int | None = None
    unclosed: str = ""
    quoted: str = ""

    @property
    def acts(self) -> bool:
        """Whether the reply has a command, or a broken one."""
        return bool(self.commands or self.unclosed or self.quoted)


def read_reply(text: str) -> ShellReply:
    """The commands of a reply, in order; linear in its length."""
    if "$(" not in text:
        return ShellReply(prose=text)
    return _Reader(text).read()


class _Reader:
    """Goes from mark to mark: `_at` is where it reads on, until it `_is_over`."""

    def __init__(self, text: str) -> None:
        self.reply = ShellReply()
        self._text = text
        self._words = WordSplitter(text)
        self._at = 0
        self._is_over = False
        self._prose: list[str] = []
        self._since = 0  # up to here the text is in the prose, or a command
        self._line_end = -1  # of the line that was looked at last
        self._follows_command = False  # nothing but blanks comes after the last command

    def read(self) -> ShellReply:
        if thought := _THOUGHT.match(self._text):
            self._at = self._since = thought.end()
        while not self._is_over and (mark := _MARK.search(self._text, self._at)):
            between = self._text[self._at : mark.start()]
            self._follows_command &= not between.strip(" \t\r\n.,;")
            match mark.lastgroup:
                case "fence":
                    self._read_fence(mark)
                case "ticks" | "line" as kind:
                    self._read_code(mark, mark[kind])
                case "output":
                    self._read_output(mark)
                case "quote":
                    self._at = self._end_of_line(mark.end())
                case _:
                    self._read_command(mark)
        self._prose.append(self._text[self._since : self.reply.made_up_from])
        self.reply.prose = "".join(self._prose).strip()
        return self.reply

    def _add(self, commands: Sequence[ShellCommand], start: int, end: int) -> None:
        """Take in commands that stand at this place, unless what follows is given out as their output."""
        self.reply.commands += commands
        self._prose.append(self._text[self._since : start])
        self._at = self._since = end
        self._follows_command = True
        if _CLAIM.match(self._text, end):
            self._end_at_made_up(end)

    def _end_at_made_up(self, start: int) -> None:
        self.reply.made_up_from = start
        self._is_over = True

    def _read_output(self, mark: re.Match[str]) -> None:
        """Outputs are made up where a command came before, else quoted."""
        if not self.reply.commands:
            following = _COMMAND_LINE.search(self._text, mark.end())
            if following is None:
                self._is_over = True
                return
            self.reply.quoted = following["name"]
        self._end_at_made_up(mark.start())

    def _read_command(self, mark: re.Match[str]) -> None:
        self._at = mark.end()
        if command := self._command_at(mark.start()):
            self._add([command], command.start, command.end)

    def _command_at(self, start: int) -> ShellCommand | None:
        """The command that begins there; None: none does, or it has no end, which ends the reading."""
        match = _NAME.match(self._text, start + 2) if self._text.startswith("$(", start) else None
        if match is None:
            return None
        name, begin = match["name"], match.end()
        words: list[Word] = []
        if name in PROSE:
            end = self._end_of_prose(begin)
        else:
            words, end = self._words.read(begin)
        if end is not None:
            return ShellCommand(name, self._text[begin:end], words, start, end + 1)
        if name == "done":  # the answer goes on to the end of the reply
            return ShellCommand(name, self._text[begin:].rstrip().removesuffix(")"), [], start, len(self._text))
        self.reply.unclosed = name
        self._is_over = True
        return None

    def _end_of_prose(self, begin: int) -> int | None:
        """Where the parenthesis is that closes the command; None: nowhere.

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
            return None
        following = text.find("$(", at)
        rest = text[at : following if following > 0 else len(text)].rstrip()
        runs_on = rest.endswith(")") and rest.count(")") > rest.count("(")
        return at - 1 + len(rest) if runs_on else at - 1

    def _read_fence(self, mark: re.Match[str]) -> None:
        """A fence of nothing but commands is as if it weren't there; no other is looked into."""
        fence = mark["fence"]
        closing = re.compile(rf"^[ \t]*+{fence[0]}{{{len(fence)},}}+[ \t\r]*+$", re.MULTILINE)
        commands, end = self._only_commands(mark.end(), closing)
        if self._is_over:
            return
        if commands and end is not None:
            self._add(commands, mark.start(), end)
        elif self._follows_command:
            self._end_at_made_up(mark.start())
        elif closed := closing.search(self._text, commands[-1].end if commands else mark.end()):
            self._at = closed.end()
        else:
            self._is_over = True

    def _only_commands(self, at: int, closing: re.Pattern[str]) -> tuple[list[ShellCommand], int | None]:
        """The commands that a fence begins with, and where it ends; None: it holds something else."""
        commands: list[ShellCommand] = []
        while blanks := _BLANKS.match(self._text, at):
            line = self._text.rfind("\n", at, blanks.end()) + 1
            if line and (closed := closing.match(self._text, line)):
                return commands, closed.end()
            if line and (comment := _COMMENT.match(self._text, line)):
                at = comment.end()
                continue
            if blanks.end() == len(self._text):
                return commands, len(self._text)
            command = self._command_at(blanks.end())
            if command is None:
                break
            commands.append(command)
            at = command.end
        return commands, None

    def _read_code(self, mark: re.Match[str], ticks: str) -> None:
        """Code in a line isn't looked into, unless it is a line of commands."""
        begin = mark.end()
        closing = re.compile(rf"(?<!`)`{{{len(ticks)}}}(?!`)")
        closed = closing.search(self._text, begin, self._end_of_line(begin))
        if closed is None:
            self._at = begin
            return
        self._at = closed.end()
        if mark.lastgroup == "line" and _LINE_END.match(self._text, closed.end()):
            inner = read_reply(self._text[begin : closed.start()])
            if inner.commands and not inner.prose and not inner.unclosed and inner.made_up_from is None:
                moved = [replace(each, start=each.start + begin, end=each.end + begin) for each in inner.commands]
                self._add(moved, mark.start(), closed.end())

    def _end_of_line(self, at: int) -> int:
        if self._line_end < at:
            end = self._text.find("\n", at)
            self._line_end = len(self._text) if end < 0 else end
        return self._line_end


def plain_prose(prose: str) -> str:
    """The prose, with the backslash removed from escaped parentheses that have no partner."""
    prose = prose.strip()
    return prose if prose.count("\\(") == prose.count("\\)") else re.sub(r"\\([()])", r"\1", prose)
