"""Wake scripts: a command that runs before a cron job, without a model, and decides whether the job's turn begins."""

from collections.abc import AsyncGenerator, Sequence

import msgspec

from denizen.entries import AnyEntry, ToolEntry
from denizen.events import Finished, StreamEvent
from denizen.messages import AssistantMessage, Document, Text, ToolCall, ToolResult
from denizen.ports import InboundMessage, Limits, ModelRequest, OutboundMessage
from denizen.worlds.chat.ledger import outbound
from denizen.worlds.chat.ledger.reply_options import with_attachments

_SCRIPT = "denizen.wake"
_OUTPUT_NAME = "output of the wake script"


class WakeScript(msgspec.Struct, frozen=True):
    """The script that comes before a run, and the session of the job's turns."""

    command: str
    session_key: str

    @classmethod
    def of(cls, message: InboundMessage) -> "WakeScript | None":
        """The script that the message is to run; None: it is an ordinary message."""
        given = message.metadata.get(_SCRIPT)
        return msgspec.convert(given, cls) if given else None

    def put_before(self, message: InboundMessage, session_key: str) -> InboundMessage:
        """The run's message, for a turn of the script in a session of its own."""
        metadata = {**message.metadata, _SCRIPT: msgspec.to_builtins(self)}
        return msgspec.structs.replace(message, session_key=session_key, metadata=metadata)


class ScriptCaller:
    """Takes the model's place in the turn of a script: calls `bash` once, and says nothing about the result.

    So a script has what every command has: policy, sandbox, checkpoint, and a record that keeps it from running twice.
    """

    name = "script"
    local = True

    def __init__(self, command: str) -> None:
        self._command = command

    def limits(self, session_key: str = "") -> Limits:
        """No limits."""
        return Limits()

    async def close(self) -> None:
        """Nothing to close."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent]:
        """The call; once it has a result, also that of an interrupted one, the end of the turn."""
        if any(isinstance(each, ToolResult) for each in request.messages):
            yield Finished(AssistantMessage([Text("The script has ended.")], self.name))
        else:
            call = ToolCall("script", "bash", {"command": self._command})
            yield Finished(AssistantMessage([call], self.name, stop_reason="tool_calls"))


def outcome_of(
    script: WakeScript, message: InboundMessage, entries: Sequence[AnyEntry], error: str
) -> InboundMessage | OutboundMessage | None:
    """What follows from a script's turn: the job's message with the output, a report of a failure, or nothing.

    The id of either is always the same, so that a crash doubles none.
    """
    result = next((entry.message for entry in reversed(entries) if isinstance(entry, ToolEntry)), None)
    if result is None or result.is_error:
        return outbound.reply_to(message, f"The wake script failed: {result.text if result else error}")
    if "no_output" in result.details:
        return None
    job = InboundMessage(
        message.channel,
        message.chat,
        message.sender,
        message.content,
        script.session_key,
        metadata={name: value for name, value in message.metadata.items() if name != _SCRIPT},
        id=outbound.woken_id(message.id),
    )
    return with_attachments(job, [Document("text/plain", result.text.encode(), _OUTPUT_NAME, outside=True)])
