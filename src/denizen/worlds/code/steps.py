"""What the agent did, step by step, where its answer doesn't say so."""

import re
from collections.abc import Sequence

from denizen.messages import AssistantMessage, Message, ToolResult
from denizen.worlds.world import AgentHandle

HEADING = "## Steps"
REQUEST = f"End your answer with a section {HEADING!r}: what you did and why, step by step."
_SECTION = re.compile(rf"^{HEADING}\s*$", re.MULTILINE)


def explained(agent: AgentHandle, reply: str, messages: Sequence[Message]) -> str:
    """The steps that the answer lacks, made of the calls of the turn; empty where it has them."""
    if _SECTION.search(reply):
        return ""
    failed = {message.call_id for message in messages if isinstance(message, ToolResult) and message.is_error}
    record = agent.record
    replies = [message for message in messages if isinstance(message, AssistantMessage)]
    calls = [call for reply in replies for call in record.calls_of(reply)]
    shown = (record.shown(call) + (" (failed)" if call.id in failed else "") for call in calls)
    steps = [f"{number}. {line}" for number, line in enumerate(shown, 1)]
    return "\n".join([HEADING, *(steps or ["1. Answered without looking anything up."])])
