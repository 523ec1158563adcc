"""Tools that the client runs: a call parks the turn, which goes on with the result that the client sends."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from denizen.engine import AgentRecord
from denizen.engine.resume import last_reply
from denizen.entries import AnyEntry, ToolEntry
from denizen.errors import ToolRefused
from denizen.messages import Text, ToolCall, ToolResult
from denizen.ports import Answer, Control, InboundMessage, Schema, Session, ToolContext, Toolset, Traits
from denizen.tools.accepted import accepted_schema

CALLER_RUNS = "The caller runs this tool."  # kept in sessions: the wording stays
"""The question of a turn that is parked for such a result."""
NO_RESULT = "The client sent no result."
_TOOLS = "denizen.caller_tools"


class CallerTool:
    """A tool that the client runs."""

    shell_names: Sequence[str] = ()
    traits = Traits.REPEATABLE | Traits.UNTRUSTED

    def __init__(self, schema: Schema) -> None:
        self.name = schema.name
        self.schema = accepted_schema(schema.name, schema.description, schema.parameters)

    async def run(self, args: dict[str, Any], turn: ToolContext) -> ToolResult:
        """Park the turn; if it goes on without a result, the call is refused."""
        await turn.ask(CALLER_RUNS)
        raise ToolRefused(NO_RESULT)


def offer(message: InboundMessage, tools: Sequence[Schema]) -> InboundMessage:
    """The message with the client's tools."""
    if not tools:
        return message
    return msgspec.structs.replace(message, metadata={**message.metadata, _TOOLS: msgspec.to_builtins(tools)})


def offered(message: InboundMessage) -> list[Schema]:
    """The client's tools that a message brought."""
    return msgspec.convert(message.metadata.get(_TOOLS, []), list[Schema])


def with_tools(record: AgentRecord, tools: Sequence[Schema]) -> AgentRecord:
    """The agent with these tools, but not for its subagents, whose calls the client doesn't see."""
    if not tools:
        return record
    own = Toolset([*record.tools, *map(CallerTool, tools)])
    return replace(record, tools=own, subagent=lambda _, name: record.subagent(record, name))


def open_calls(entries: Sequence[AnyEntry], tools: Sequence[Schema]) -> list[ToolCall]:
    """The calls of the client's tools without a result."""
    last, names = last_reply(entries), {tool.name for tool in tools}
    if last is None:
        return []
    return [call for call in last.reply.tool_calls if call.name in names and call.id not in last.results]


def result_of(call: ToolCall, text: str, *, is_error: bool = False) -> ToolResult:
    """The client's result of a call: untrusted text."""
    return ToolResult(
        call.id, call.name, [Text(text)], is_error=is_error, details={"untrusted": True}, wire_id=call.wire_id
    )


async def keep_results(session: Session, controls: Sequence[Control], tools: Sequence[Schema]) -> list[Control]:
    """Write the results among the controls into the session; the other controls are returned."""
    calls = {call.id: call for call in open_calls(session.entries, tools)}
    others: list[Control] = []
    for control in controls:
        if isinstance(control, Answer) and (call := calls.pop(control.call_id, None)):
            result = result_of(call, control.text, is_error=not control.allow)
            await session.append(ToolEntry(message=result))
        else:
            others.append(control)
    return others
