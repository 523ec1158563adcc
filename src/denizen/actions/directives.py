"""The `directives` action format: lines such as `GOAL: …` and `SCRIPT: … | …`, by which a character acts in a world."""

import hashlib
import re
from typing import Any, Final, NamedTuple

import msgspec

from denizen.actions.native import Native
from denizen.actions.recovery import RECOVERED
from denizen.config.pattern import pattern
from denizen.messages import AssistantMessage, Thinking, ToolCall
from denizen.ports import NOTHING_SEEN, Directive, Intent, ModelRequest, SeenText, StreamFilter, Toolset
from denizen.text.special_tokens import scrub

BARE: Final = f"{RECOVERED}bare-"
"""Prefix of the ids of calls that are a whole reply without any syntax: they count only while a goal is set."""

_KEYWORDS: Final = "GOAL|PLAN|COMMAND|SCRIPT|DONE|BUILD_PLAN|SOUL_PATCH_RULE|SOUL_PATCH_VERB|SOUL_PATCH_NOTE"
_DIRECTIVE: Final = pattern(rf"\s*(?P<bold>\**)(?P<name>{_KEYWORDS})\**\s*:\**(?P<value>.*)")
_TAGGED: Final = pattern(r"\s*<(?P<tag>[\w-]+)>(?P<inner>.*)</(?P=tag)>\s*")
_TAGS: Final = 3
"""Tags in each other that may be around a line."""
_TAG: Final = pattern(r"\s*</?[\w-]+>\s*")
_FENCE: Final = "```"
_BEGINS_COMMAND: Final = pattern(
    r"@|(?:say|emote|page|whisper|look|go|take|get|put|drop|give|open|close|read|teleport"
    r"|[nsewud]|[ns][ew]|(?:north|south)(?:east|west)?|east|west|up|down)(?=\s|\Z)"
)
_PHRASE: Final = pattern(r"[a-z][^.?!…:]*")
_GRAMMAR: Final = """\
<directives>
Each of these counts on a line of its own; what else you write are thoughts, which nobody in the world hears.
GOAL: what you are about to do
PLAN: room | room | …
SCRIPT: command | command | …
COMMAND: one command
DONE: what you have reached: the goal is cleared
BUILD_PLAN: a plan of rooms, as YAML, on the lines below it
SOUL_PATCH_RULE: regular expression -> command, to be sent whenever a line matches it
SOUL_PATCH_VERB: intent -> command
SOUL_PATCH_NOTE: something that you have learned, for later sessions
Commands are the world's own, as you would type them there; the tool `{tool}` sends them.
</directives>"""


class _Line(NamedTuple):
    """A directive: its text, line by line, and its first line verbatim from the keyword on."""

    name: str
    lines: list[str]
    head: str

    @property
    def written(self) -> str:
        """All of it."""
        return "\n".join([self.head, *self.lines]) if self.name == "BUILD_PLAN" else self.head

    @property
    def value(self) -> Any:
        """What it says: a text, or the items of a PLAN or a SCRIPT."""
        match self.name:
            case "PLAN":
                return _items(self.lines[0])
            case "SCRIPT":
                return [*map(_command, _items(self.lines[0]))]
            case "COMMAND":
                return [*filter(None, [_command(self.lines[0])])]
            case "BUILD_PLAN":
                lines = self.lines[1:] if self.lines[0].startswith(_FENCE) else self.lines
                return "\n".join(lines).replace("\\n", "\n").strip("\n")
            case _:
                return self.lines[0]


class Directives:
    """Commands for the world become calls of one tool, which takes a command as its `argument`; the rest is state.

    Reads leniently what models write (decisions, "Directives"). A line of the world that is repeated as it was there
    is not the model's own: its calls are quotations, and any other directive becomes one named `quotation`. Results
    are reported as `Native` does for calls in text.
    """

    name = "directives"
    lists_tools = True

    def __init__(self, tool: str = "raw", argument: str = "command") -> None:
        self._tool = tool
        self._argument = argument
        native = Native()
        self.extra_tools = native.extra_tools
        self.report = native.report
        self.show = native.show

    def prepare(self, request: ModelRequest, tools: Toolset) -> ModelRequest:
        """The request with the grammar in its prompt."""
        system = "\n\n".join(filter(None, (request.system, _GRAMMAR.format(tool=self._tool))))
        return msgspec.structs.replace(request, system=system)

    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        """Commands as calls, other directives, and what is left as words; of several COMMANDs the last counts."""
        text = scrub(message.text)
        lines, words = _directives(text)
        said = f"{text}\0{message.model}\0{message.stem}".encode(errors="surrogatepass")
        stem = hashlib.blake2b(said, digest_size=6).hexdigest()
        calls: list[ToolCall] = []
        quoted: set[str] = set()
        directives: list[Directive] = []
        last = next((line for line in reversed(lines) if line.name == "COMMAND"), None)
        for line in lines:
            quotes = seen.quotes(line.written)
            if line is last or line.name == "SCRIPT":
                for command in line.value:
                    calls.append(self._call(f"{RECOVERED}{stem}-{len(calls) + 1}", command, tools))
                    quoted |= {calls[-1].id} if quotes else set()
            elif line.name != "COMMAND" and (value := line.value):
                own = Directive(line.name.lower(), value)
                directives.append(Directive("quotation", line.written) if quotes else own)
        if not lines and message.stop_reason != "tool_calls" and (bare := _bare_command(words)):
            calls, words = [self._call(f"{BARE}{stem}", bare, tools)], ""
            quoted = {calls[0].id} if " " in bare and seen.quotes(bare, players=True) else set()
        return Intent(
            calls,
            words,
            "\n".join(part.text for part in message.content if type(part) is Thinking),
            directives=directives,
            kept_text=None if text == message.text else text,
            quoted=frozenset(quoted),
        )

    def _call(self, call_id: str, command: str, tools: Toolset) -> ToolCall:
        """The call that sends the command; of the tool that it names, where that takes nothing."""
        tool = tools.get(command)
        if tool and not tool.schema.parameters.get("required"):
            return tools.meant_by(ToolCall(call_id, command, {}))
        return tools.meant_by(ToolCall(call_id, self._tool, {self._argument: command}))

    def stream_filter(self, tools: Toolset) -> StreamFilter:
        """Shows nothing while it streams: nobody watches a character's words as they come."""
        return _HoldAll()


class _HoldAll:
    def feed(self, piece: str) -> str:
        return ""


def _directives(text: str) -> tuple[list[_Line], str]:
    """The directives of a reply, and its other words; what is in a fence is shown, unless the reply is nothing else."""
    whole = text.strip()
    if whole.startswith(_FENCE) and whole.endswith(_FENCE) and whole.count(_FENCE) == 2:
        text = whole.partition("\n")[2].removesuffix(_FENCE)
    found: list[_Line] = []
    words: list[str] = []
    plan: list[str] | None = None  # the lines of the BUILD_PLAN that goes on
    in_fence = False
    for line in text.split("\n"):
        for _ in range(0 if in_fence else _TAGS):
            tagged = _TAGGED.fullmatch(line)
            line = tagged["inner"] if tagged else line
        directive = None if in_fence else _DIRECTIVE.fullmatch(line)
        if directive and directive["name"] == "BUILD_PLAN":
            plan = [directive["value"].strip()]
            in_fence = plan[0].startswith(_FENCE)
            found.append(_Line("BUILD_PLAN", plan, "BUILD_PLAN:"))
        elif directive:
            plan = None
            found.append(_line(directive))
        elif line.lstrip().startswith(_FENCE):
            in_fence = not in_fence
            words += [line] if plan is None else []
        elif in_fence or not _TAG.fullmatch(line):
            (words if plan is None else plan).append(line)
    return found, "\n".join(words).strip()


def _line(found: re.Match[str]) -> _Line:
    value = found["value"].strip()
    if found["bold"]:
        value = value.removesuffix("**").rstrip()
    written = f"{found['name']}: {value}"
    inner = _DIRECTIVE.fullmatch(value)
    if inner and {found["name"], inner["name"]} <= {"COMMAND", "SCRIPT"}:
        return _Line(inner["name"], [inner["value"].strip()], written)
    return _Line(found["name"], [value], written)


def _items(value: str) -> list[str]:
    """What is between the pipes; those in quotation marks are part of it."""
    pieces, held, in_quotes = list[str](), list[str](), False
    for piece in value.split("|"):
        held.append(piece)
        in_quotes ^= (piece.count('"') - piece.count('\\"')) % 2 == 1
        if not in_quotes:
            pieces.append("|".join(held))
            held.clear()
    if held:  # a quotation mark has no end
        pieces = value.split("|")
    return [item for piece in pieces if (item := piece.strip("` \t"))]


def _command(text: str) -> str:
    """A command without the back-ticks around it, and without the `done.` that some models add to @tunnel."""
    command = text.strip("` \t")
    stem = command.removesuffix(".")
    return stem[:-5].rstrip(" .,") if command.startswith("@tunnel ") and stem.endswith(" done") else command


def _bare_command(words: str) -> str:
    """The one line of a reply that reads as a command; empty: it doesn't (decisions, "Directives")."""
    line = words.strip("` ")
    if not line or "\n" in line:
        return ""
    is_command = _BEGINS_COMMAND.match(line) is not None
    is_phrase = _PHRASE.fullmatch(line) is not None and len(line.split()) <= 4
    return line if is_command or is_phrase else ""
