"""Wake scripts: commands that run before a cron job, without a model, and decide whether its turn begins."""

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
    """The script to run first, and the session of the job's turns."""

    command: str
    session_key: str

    @classmethod
    def of(cls, message: InboundMessage) -> "WakeScript | None":
        """The script that the message runs; None for an ordinary message."""
        given = message.metadata.get(_SCRIPT)
        return msgspec.convert(given, cls) if given else None

    def put_before(self, message: InboundMessage, session_key: str) -> InboundMessage:
        """The run's message, for a turn of the script in a session of its own."""
        metadata = {**message.metadata, _SCRIPT: msgspec.to_builtins(self)}
        return msgspec.structs.replace(message, session_key=session_key, metadata=metadata)


class WakeScriptModel:
    """Replaces the model in a script's turn: it calls `bash` once, and ignores the result.

    So a script gets what every command gets: policy, sandbox, checkpoint, and a record that prevents a second run.
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
        """The call, then the end of the turn once there is a result, even "interrupted"."""
        if any(isinstance(each, ToolResult) for each in request.messages):
            yield Finished(AssistantMessage([Text("The script has ended.")], self.name))
        else:
            call = ToolCall("script", "bash", {"command": self._command})
            yield Finished(AssistantMessage([call], self.name, stop_reason="tool_calls"))


def outcome_of(
    script: WakeScript, message: InboundMessage, entries: Sequence[AnyEntry], error: str
) -> InboundMessage | OutboundMessage | None:
    """The result of a script's turn: the job's message with the output, a report of a failure, or nothing.

    Their ids are always the same, so a crash duplicates neither.
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
        id=outbound.continuation_id(message.id),
    )
    return with_attachments(job, [Document("text/plain", result.text.encode(), _OUTPUT_NAME, outside=True)])
