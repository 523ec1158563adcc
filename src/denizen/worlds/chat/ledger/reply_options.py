"""How a message is answered: what its turn begins with, and what is sent when it ends."""

from collections.abc import Sequence

import msgspec

from denizen.engine.finish import EMPTY_ANSWER
from denizen.events import RunResult
from denizen.messages import Document, Image, Text, UserPart
from denizen.ports import InboundMessage

DEFAULT_RESPONSE = "I've finished, and have nothing to add."
_RUN, _ATTACHED, _TRANSCRIPT = "denizen.run", "denizen.images", "denizen.transcript"
Attachment = Image | Document


class ReplyOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a message is answered.

    Without `history` the model sees nothing of earlier turns. Without `send_response` the reply is kept in the ledger,
    for the program that asked. Without `enable_summary` the session isn't summarised after the turn.
    """

    history: bool = True
    send_response: bool = True
    enable_summary: bool = True

    @classmethod
    def of(cls, message: InboundMessage) -> "ReplyOptions":
        """The options of a message."""
        return msgspec.convert(message.metadata.get(_RUN, {}), cls)

    def put_in(self, message: InboundMessage) -> InboundMessage:
        """The message with these options."""
        metadata = {**message.metadata, _RUN: msgspec.to_builtins(self)}
        return msgspec.structs.replace(message, metadata=metadata)


def with_attachments(message: InboundMessage, attached: Sequence[Attachment]) -> InboundMessage:
    """The message with pictures and documents for the model."""
    if not attached:
        return message
    return msgspec.structs.replace(message, metadata={**message.metadata, _ATTACHED: msgspec.to_builtins(attached)})


def has_attachments(message: InboundMessage) -> bool:
    """Whether the message is more than text."""
    return bool(message.media or message.metadata.get(_ATTACHED))


def with_transcript(message: InboundMessage, texts: Sequence[str]) -> InboundMessage:
    """The message with the texts of its voice messages."""
    return msgspec.structs.replace(message, metadata={**message.metadata, _TRANSCRIPT: [*texts]})


def has_transcript(message: InboundMessage) -> bool:
    """Whether the message's voice messages were transcribed."""
    return _TRANSCRIPT in message.metadata


def parts_of(message: InboundMessage) -> list[UserPart]:
    """The parts of a message that the model sees."""
    spoken = [f"[voice message] {each}" for each in message.metadata.get(_TRANSCRIPT, [])]
    written = [message.content] if message.content or not spoken else []
    words = "\n".join((*written, *spoken, *(f"[attached: {each}]" for each in message.media)))
    attached = msgspec.convert(message.metadata.get(_ATTACHED, []), list[Attachment])
    text = [Text(words)] if words or not attached else []
    return [*text, *attached]


def reply_text(result: RunResult) -> str:
    """The text of a turn's reply; for an empty one its error, or `DEFAULT_RESPONSE`."""
    if result.reply.strip():
        return result.reply
    if result.stop_reason == "cancelled":
        return "Stopped."
    return DEFAULT_RESPONSE if result.error in {"", EMPTY_ANSWER} else result.error
