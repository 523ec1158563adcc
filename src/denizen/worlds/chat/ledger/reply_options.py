"""How one message is answered: with what its turn begins, and what is sent of what it comes to."""

from collections.abc import Sequence

import msgspec

from denizen.engine.finish import EMPTY
from denizen.events import RunResult
from denizen.messages import Document, Image, Text, UserPart
from denizen.ports import InboundMessage

DEFAULT_RESPONSE = "I've finished, and have nothing to add."
_RUN, _ATTACHED = "denizen.run", "denizen.images"
Attachment = Image | Document


class ReplyOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one message is answered.

    Without `history` the model sees nothing of earlier turns; `default_response` stands in for an empty reply; without
    `send_response` the reply is kept for whoever asked; without `enable_summary` the turn is no reason to summarise the
    session.
    """

    history: bool = True
    default_response: str = DEFAULT_RESPONSE
    send_response: bool = True
    enable_summary: bool = True

    @classmethod
    def of(cls, message: InboundMessage) -> "ReplyOptions":
        """Those that a message came with."""
        return msgspec.convert(message.metadata.get(_RUN, {}), cls)

    def put_in(self, message: InboundMessage) -> InboundMessage:
        """The message, to be answered so."""
        metadata = {**message.metadata, _RUN: msgspec.to_builtins(self)}
        return msgspec.structs.replace(message, metadata=metadata)


def with_attachments(message: InboundMessage, attached: Sequence[Attachment]) -> InboundMessage:
    """The message, with pictures and documents for the model to see."""
    if not attached:
        return message
    return msgspec.structs.replace(message, metadata={**message.metadata, _ATTACHED: msgspec.to_builtins(attached)})


def has_attachments(message: InboundMessage) -> bool:
    """Whether there is more to it than words."""
    return bool(message.media or message.metadata.get(_ATTACHED))


def parts_of(message: InboundMessage) -> list[UserPart]:
    """What the model sees of a message."""
    words = "\n".join((message.content, *(f"[attached: {each}]" for each in message.media)))
    attached = msgspec.convert(message.metadata.get(_ATTACHED, []), list[Attachment])
    text = [Text(words)] if words or not attached else []
    return [*text, *attached]


def reply_text(result: RunResult, default: str = DEFAULT_RESPONSE) -> str:
    """The words of a turn's reply, or those that stand in for them."""
    if result.reply.strip():
        return result.reply
    if result.stop_reason == "cancelled":
        return "Stopped."
    return default if result.error in {"", EMPTY} else result.error
