"""What providers ask of a conversation that holds calls."""

from collections.abc import Iterable

from denizen.messages import AssistantMessage, Message, ToolResult


def calls_are_paired(messages: Iterable[Message]) -> bool:
    """Whether each call has its one result right after its message, and each result its call."""
    owed: list[str] = []
    for message in messages:
        if isinstance(message, ToolResult):
            if message.call_id not in owed:
                return False
            owed.remove(message.call_id)
        elif owed:
            return False
        elif isinstance(message, AssistantMessage):
            owed = [call.id for call in message.tool_calls]
    return not owed
