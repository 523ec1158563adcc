"""The `shell` action format: commands in the model's text."""

import hashlib
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import msgspec

from denizen.actions.native import Native, is_quotation
from denizen.actions.shell.arguments import arguments_of, show
from denizen.actions.shell.commands import MAX_COMMANDS, Help, find_tool, grammar_of, parameters_of, unknown_command
from denizen.actions.shell.reply import ShellCommand, ShellReply, plain_prose, read_reply
from denizen.config.pattern import pattern
from denizen.errors import ToolRefused
from denizen.messages import AssistantMessage, Message, Text, Thinking, ToolCall, ToolResult, UserMessage, UserPart
from denizen.ports import MISUSED, NOTHING_SEEN, Intent, ModelRequest, SeenText, StreamFilter, Tool, Toolset

_OUR_ID = pattern(r"sh[0-9a-f]{12}-(?P<number>\d+)")
_MAX_SHOWN_CHARS = 40
"""Characters of a command that wasn't run which the model is shown."""
_CUT_OFF = frozenset({"length", "refusal", "error", "aborted"})
"""Ends of a reply after which its commands aren't run, so that nothing can rest on them."""

_MADE_UP = (
    "What followed your commands as their output was made up, so it is cut off; commands after it were not run. "
    "Outputs are only here."
)
_CUT = "(Outputs that were made up, cut off.)"
_UNCLOSED = (
    "its parenthesis, or a quote in it, is never closed, so neither it nor anything after it was run. "
    "Within '…' nothing can be escaped: use \"…\", or <<'END' for text of any kind"
)
_QUOTED = "not run: it comes after outputs (`[1] $ …`) that you wrote yourself. Send commands alone, then wait"
_BOTH = "The commands in your text were not run: the reply also had structured calls."


class Shell:
    """The model writes `$(cmd …)` into its text, for any tool (decisions, "Commands in text").

    Calls that come in another way are read as `Native` reads them.
    """

    name = "shell"
    lists_tools = True

    def __init__(self) -> None:
        self._native = Native()
        self._grammars: WeakKeyDictionary[Toolset, str] = WeakKeyDictionary()

    def extra_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """`$(help)`, if there are tools to explain."""
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
        if not message.tool_calls and reply.acts:
            return _intent(message, reply, tools, seen)
        intent = self._native.read(message, tools, seen)
        return msgspec.structs.replace(intent, problems=[_BOTH]) if reply.commands else intent

    def stream_filter(self, tools: Toolset) -> StreamFilter:
        """Shows the words up to the first command, or the answer that the reply begins with."""
        from denizen.actions.shell.streaming import HoldCommands

        return HoldCommands(tuple(tool.name for tool in tools))

    def report(self, results: Sequence[ToolResult]) -> Sequence[Message]:
        """The outputs in one message, numbered as the commands were; results of structured calls as they are."""
        ours = sorted(
            (int(own["number"]), n) for n, each in enumerate(results) if (own := _OUR_ID.fullmatch(each.call_id))
        )
        others = self._native.report([each for each in results if not _OUR_ID.fullmatch(each.call_id)])
        if not ours:
            return others
        parts: list[UserPart] = []  # neighbouring texts of a result as one
        for number, n in ours:
            result = results[n]
            above, failed = "\n\n" if parts else "", " (failed)" if result.is_error else ""
            parts.append(Text(f"{above}[{number}] $ {result.name}{failed}\n"))
            for part in result.content:
                if isinstance(part, Text) and isinstance(parts[-1], Text):
                    parts[-1] = Text(parts[-1].text + part.text)
                else:
                    parts.append(part)
        return [*others, UserMessage(parts)]

    def show(self, call: ToolCall, tools: Toolset) -> str:
        """The command without its `$( )`."""
        return show(call, tools)


def names_written(message: AssistantMessage) -> dict[str, str]:
    """What a reply's commands call their tools, which may have several names, by the ids of the calls."""
    stem, commands = _id_stem(message), _calling(read_reply(message.text))
    return {f"{stem}-{number}": command.name for number, command in enumerate(commands, 1)}


def _id_stem(message: AssistantMessage) -> str:
    said = f"{message.text}\0{message.model}\0{message.stem}".encode(errors="surrogatepass")
    return f"sh{hashlib.sha256(said).hexdigest()[:12]}"


def _calling(reply: ShellReply) -> list[ShellCommand]:
    """The commands that call a tool."""
    return [command for command in reply.commands if command.name != "done"]


def _intent(message: AssistantMessage, reply: ShellReply, tools: Toolset, seen: SeenText) -> Intent:
    """What the commands of a reply ask for."""
    stem, commands = _id_stem(message), _calling(reply)
    run, over = commands[:MAX_COMMANDS], commands[MAX_COMMANDS:]
    calls = [_call(f"{stem}-{number}", command, tools) for number, command in enumerate(run, 1)]
    quoted = [
        call.id
        for call, command in zip(calls, run, strict=True)
        if is_quotation(call, message.text[command.start : command.end], tools, seen)
    ]
    next_id = f"{stem}-{len(calls) + 1}"
    if reply.unclosed:
        calls.append(_misused(next_id, reply.unclosed, _UNCLOSED, tools))
    elif reply.quoted:
        calls.append(_misused(next_id, reply.quoted, _QUOTED, tools))

    answers = [command for command in reply.commands if command.name == "done"]
    rests_on_unrun = over or any(MISUSED in call.args for call in calls) or message.stop_reason in _CUT_OFF
    ends_turn = bool(answers) and not rests_on_unrun
    answer = plain_prose(answers[-1].body) if answers and (ends_turn or not calls) else ""

    problems = [_too_many(over)] if over else []
    kept_text = None
    if reply.made_up_from is not None:
        kept_text = message.text[: reply.made_up_from].rstrip() or _CUT
        if not reply.quoted:
            problems.append(_MADE_UP)
    return Intent(
        calls,
        answer or reply.prose,
        "\n".join([part.text for part in message.content if type(part) is Thinking]),
        ends_turn=ends_turn,
        problems=problems if calls else [],
        kept_text=kept_text,
        quoted=frozenset(quoted),
    )


def _too_many(over: Sequence[ShellCommand]) -> str:
    """What the model reads of commands beyond those that a reply may have."""
    named: list[str] = []
    for each in over[:MAX_COMMANDS]:
        words = " ".join(each.body.split())
        short = words if len(words) <= _MAX_SHOWN_CHARS else f"{words[:_MAX_SHOWN_CHARS]}…"
        named.append(f"$({each.name} {short})" if short else f"$({each.name})")
    more = f" and {len(over) - len(named)} more" if len(over) > len(named) else ""
    return f"Not run, because a reply may have {MAX_COMMANDS} commands: {', '.join(named)}{more}."


def _call(call_id: str, command: ShellCommand, tools: Toolset) -> ToolCall:
    tool = find_tool(command.name, tools)
    if tool is None:
        unknown = f"{unknown_command(command.name, tools)}. To only mention it put it in `code`."
        return _misused(call_id, command.name, unknown, tools)
    parameters = parameters_of(tool.schema)
    try:
        return tools.meant_by(ToolCall(call_id, tool.name, arguments_of(command, parameters)))
    except ToolRefused as why:
        usage = f"usage: $({parameters.usage(command.name)})"
        return _misused(call_id, tool.name, f"{command.name}: {why}\n{usage}", tools)


def _misused(call_id: str, name: str, why: str, tools: Toolset) -> ToolCall:
    tool = find_tool(name, tools)
    return ToolCall(call_id, tool.name if tool else name, {MISUSED: why})
