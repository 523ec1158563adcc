"""The `shell` action format: commands in the model's text."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import msgspec

from denizen.actions.native import Native
from denizen.actions.shell.arguments import arguments_of
from denizen.actions.shell.grammar import MOST, grammar_of
from denizen.actions.shell.help import Help
from denizen.actions.shell.parameters import parameters_of
from denizen.actions.shell.prose import plain
from denizen.actions.shell.reply import Command, Reply, read_reply
from denizen.actions.shell.show import show
from denizen.actions.shell.usage import find_tool, nearest_command, usage_of
from denizen.errors import ToolRefused
from denizen.messages import AssistantMessage, Message, Text, Thinking, ToolCall, ToolResult, UserMessage, UserPart
from denizen.ports import MISUSED, NOTHING_SEEN, Intent, ModelRequest, SeenText, StreamFilter, Tool, Toolset

if TYPE_CHECKING:
    from denizen.actions.recovery.streaming import Openings

_OUR_ID = re.compile(r"sh[0-9a-f]{12}-(?P<number>\d+)")
_CUT_OFF = frozenset({"length", "refusal", "error", "aborted"})
"""Ends of a reply after which its commands aren't run, so that nothing can rest on them."""

CLAIMED = (
    "What followed your commands as their output was made up, so it is cut off; commands behind it were not run. "
    "Outputs are only here."
)
CUT = "(Outputs that were made up, cut off.)"
UNCLOSED = (
    "its parenthesis, or a quote in it, is never closed, so neither it nor anything behind it was run. "
    "Within '…' nothing can be escaped: use \"…\", or <<'END' for text of any kind"
)
QUOTED = "not run: it stands behind outputs (`[1] $ …`) that you wrote yourself. Send commands alone, then wait"
BOTH = "The commands in your text were not run, as the reply had structured calls, too."


class Shell:
    """The model writes `$(cmd …)` into its text, for every tool there is (seed 001, "Current Format").

    Calls that come in another way are heard as `Native` hears them. What streams are the words before the first
    command, or the answer that `$(done …)` is.
    """

    name = "shell"
    lists_tools = True

    def __init__(self) -> None:
        self._native = Native()
        self._grammars: WeakKeyDictionary[Toolset, str] = WeakKeyDictionary()
        self._openings: WeakKeyDictionary[Toolset, Openings] = WeakKeyDictionary()

    def extra_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """`$(help)`, where there are tools to explain."""
        return [Help(tools)] if tools else ()

    def prepare(self, request: ModelRequest, tools: Toolset) -> ModelRequest:
        """The request with the grammar in its prompt; with schemas only where it holds structured calls already."""
        if tools not in self._grammars:
            self._grammars[tools] = grammar_of(tools)
        system = "\n\n".join(filter(None, (request.system, self._grammars[tools])))
        structured = any(type(message) is ToolResult for message in request.messages)
        schemas = tools.schemas if structured else request.tools  # providers refuse calls of tools they don't know
        return msgspec.structs.replace(request, system=system, tools=schemas)

    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        """The commands in order; a reply without any, or with structured calls, means what it means natively."""
        reply = read_reply(message.text)
        if message.tool_calls or not reply.acts:
            intent = self._native.read(message, tools, seen)
            return msgspec.structs.replace(intent, problems=[BOTH]) if reply.commands else intent
        thoughts = "\n".join([part.text for part in message.content if type(part) is Thinking])
        return _Meaning(message, reply, tools).intent(thoughts, seen)

    def stream_filter(self, tools: Toolset) -> StreamFilter:
        """The words up to the first command, or the answer that the reply begins with."""
        from denizen.actions.shell.streaming import HoldCommands, openings_of

        if tools not in self._openings:
            self._openings[tools] = openings_of(tools)
        return HoldCommands(self._openings[tools])

    def report(self, results: Sequence[ToolResult]) -> Sequence[Message]:
        """The outputs in one message, numbered as the commands were; results of structured calls as they are."""
        ours = [result for result in results if _is_command(result.call_id)]
        others = [result for result in results if not _is_command(result.call_id)]
        outputs = [UserMessage(_outputs(sorted(ours, key=_number)))] if ours else []
        return [*self._native.report(others), *outputs]

    def show(self, call: ToolCall, tools: Toolset) -> str:
        """The command without its `$( )`."""
        return show(call, tools)


def names_written(message: AssistantMessage) -> dict[str, str]:
    """What a reply's commands call their tools, which may have several names, by the ids of the calls."""
    mark, commands = _mark(message), _calling(read_reply(message.text))
    return {f"{mark}-{number}": command.name for number, command in enumerate(commands, 1)}


def _is_command(call_id: str) -> bool:
    """Whether the call was made by a command."""
    return _OUR_ID.fullmatch(call_id) is not None


class _Meaning:
    """What the commands of one reply ask for."""

    def __init__(self, message: AssistantMessage, reply: Reply, tools: Toolset) -> None:
        self._message = message
        self._reply = reply
        self._tools = tools
        self._text = message.text
        self._mark = _mark(message)

    def intent(self, thoughts: str, seen: SeenText) -> Intent:
        reply, answers = self._reply, [each for each in self._reply.commands if each.name == "done"]
        commands = _calling(reply)
        calls = [*self._calls(commands[:MOST])]
        ends = bool(answers) and not self._unheard(calls, commands[MOST:])
        return Intent(
            calls,
            self._answer(answers[-1]) if answers and (ends or not calls) else reply.prose,
            thoughts,
            ends_turn=ends,
            problems=[*self._problems(commands[MOST:])] if calls else [],
            kept_text=self._text[: reply.claimed].rstrip() or CUT if reply.claimed >= 0 else None,
            quoted=frozenset(
                self._id(number)
                for number, command in enumerate(commands[:MOST], 1)
                if seen.quotes(self._text[command.start : command.end])
            ),
        )

    def _answer(self, done: Command) -> str:
        return plain(done.body) or self._reply.prose

    def _unheard(self, calls: Sequence[ToolCall], over: Sequence[Command]) -> bool:
        """Whether something that the answer may rest on is not run."""
        return bool(over) or any(MISUSED in call.args for call in calls) or self._message.stop_reason in _CUT_OFF

    def _calls(self, commands: Sequence[Command]) -> Iterator[ToolCall]:
        for number, command in enumerate(commands, 1):
            yield self._call(number, command)
        reply, after = self._reply, len(commands) + 1
        if reply.unclosed:
            yield self._misused(after, reply.unclosed, UNCLOSED)
        elif reply.quoted:
            yield self._misused(after, reply.quoted, QUOTED)

    def _call(self, number: int, command: Command) -> ToolCall:
        tool = find_tool(command.name, self._tools)
        if tool is None:
            return self._misused(number, command.name, self._unknown(command.name))
        parameters = parameters_of(tool.schema)
        try:
            return ToolCall(self._id(number), tool.name, arguments_of(command, parameters))
        except ToolRefused as why:
            usage = f"usage: $({usage_of(command.name, parameters)})"
            return self._misused(number, tool.name, f"{command.name}: {why}\n{usage}")

    def _misused(self, number: int, name: str, why: str) -> ToolCall:
        tool = find_tool(name, self._tools)
        return ToolCall(self._id(number), tool.name if tool else name, {MISUSED: why})

    def _unknown(self, name: str) -> str:
        near = nearest_command(name, self._tools)
        maybe = f"; did you mean $({near})?" if near else ";"
        return f"there is no command {name!r}{maybe} $(help) lists them. To only mention it put it in `code`."

    def _problems(self, over: Sequence[Command]) -> Iterator[str]:
        if over:
            named = ", ".join(f"$({each.name}{_short(each.body)})" for each in over[:MOST])
            more = f" and {len(over) - MOST} more" if len(over) > MOST else ""
            yield f"Not run, as {MOST} commands are the most in one reply: {named}{more}."
        if self._reply.claimed >= 0 and not self._reply.quoted:
            yield CLAIMED

    def _id(self, number: int) -> str:
        return f"{self._mark}-{number}"


def _mark(message: AssistantMessage) -> str:
    """What begins the ids of a reply's calls."""
    said = f"{message.text}\0{message.model}\0{message.usage}".encode(errors="surrogatepass")
    return f"sh{hashlib.sha256(said).hexdigest()[:12]}"


def _calling(reply: Reply) -> list[Command]:
    """The commands that call a tool."""
    return [command for command in reply.commands if command.name != "done"]


def _short(body: str) -> str:
    words = " ".join(body.split())
    return f" {words[:40]}{'…' if len(words) > 40 else ''}" if words else ""


def _number(result: ToolResult) -> int:
    ours = _OUR_ID.fullmatch(result.call_id)
    return int(ours["number"]) if ours else 0


def _outputs(results: Sequence[ToolResult]) -> list[UserPart]:
    """All of them; the neighbouring texts of each as one."""
    parts: list[UserPart] = []
    for result in results:
        above = "\n\n" if parts else ""
        failed = " (failed)" if result.is_error else ""
        parts.append(Text(f"{above}[{_number(result)}] $ {result.name}{failed}\n"))
        for part in result.content:
            if isinstance(part, Text) and isinstance(parts[-1], Text):
                parts[-1] = Text(parts[-1].text + part.text)
            else:
                parts.append(part)
    return parts
