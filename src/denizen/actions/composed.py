"""Several action formats used together."""

from collections.abc import Sequence

import msgspec

from denizen.messages import AssistantMessage, Message, Text, Thinking, ToolCall, ToolResult
from denizen.ports import NOTHING_SEEN, ActionFormat, Intent, ModelRequest, SeenText, StreamFilter, Tool, Toolset


class Composed:
    """Formats in order of precedence: the calls of the first that has any run; all directives and thoughts count.

    Each format reads what the formats before it left of the reply.
    """

    def __init__(self, *formats: ActionFormat) -> None:
        self.formats = formats
        self.name = "+".join(each.name for each in formats)
        self.lists_tools = any(each.lists_tools for each in formats)

    def extra_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """The tools that the formats bring."""
        return [tool for each in self.formats for tool in each.extra_tools(tools)]

    def prepare(self, request: ModelRequest, tools: Toolset) -> ModelRequest:
        """The request as every format prepares it, in order."""
        for each in self.formats:
            request = each.prepare(request, tools)
        return request

    def read(self, message: AssistantMessage, tools: Toolset, seen: SeenText = NOTHING_SEEN) -> Intent:
        """What the reply asks for; calls that don't run because another format has precedence are reported."""
        whole, winner = Intent(), ""
        for each in self.formats:
            intent = each.read(message, tools, seen)
            problems = intent.problems
            if winner:
                unrun = f"The calls in the {each.name} format were not run: the reply also had {winner} calls."
                problems = [unrun] if intent.calls else []
            whole = Intent(
                calls=whole.calls or intent.calls,
                reply=intent.reply,
                thoughts="\n".join(filter(None, (whole.thoughts, intent.thoughts))),
                directives=[*whole.directives, *intent.directives],
                ends_turn=whole.ends_turn or (intent.ends_turn and not winner),
                problems=[*whole.problems, *problems],
                kept_text=whole.kept_text if intent.kept_text is None else intent.kept_text,
                quoted=whole.quoted if winner else intent.quoted,
            )
            winner = winner or (each.name if intent.calls else "")
            # what it has read: its thoughts, its structured calls, and everything but its words
            read = (Text, Thinking, *([ToolCall] if intent.calls else []))
            others = [part for part in message.content if not isinstance(part, read)]
            message = msgspec.structs.replace(message, content=[Text(intent.reply), *others])
        return whole

    def stream_filter(self, tools: Toolset) -> StreamFilter | None:
        """The filters of all formats, one after the other."""
        filters = [found for each in self.formats if (found := each.stream_filter(tools))]
        return _Chain(filters) if filters else None

    def report(self, results: Sequence[ToolResult]) -> Sequence[Message]:
        """The results as reported by the format that the calls are of."""
        messages: Sequence[Message] = results
        for each in self.formats:
            left = [message for message in messages if isinstance(message, ToolResult)]
            reported = [message for message in messages if not isinstance(message, ToolResult)]
            messages = [*each.report(left), *reported]
        return messages

    def show(self, call: ToolCall, tools: Toolset) -> str:
        """The call as the first format has it."""
        return self.formats[0].show(call, tools)


class _Chain:
    def __init__(self, filters: Sequence[StreamFilter]) -> None:
        self._filters = filters

    def feed(self, piece: str) -> str:
        for each in self._filters:
            piece = each.feed(piece)
        return piece
