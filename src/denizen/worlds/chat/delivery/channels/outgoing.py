"""Before a message is sent: whether the channel takes it, and the key that the service knows it by."""

import hashlib

from denizen.ports import ChannelLimits, OutboundMessage
from denizen.worlds.chat.delivery.channels.media import media_refusal

CONNECT_RETRY_S = 5.0
"""Until a service that can't be reached is tried again."""
REFUSED_RETRY_S = 60.0
"""Until a service that refuses the account is tried again."""


def send_refusal(message: OutboundMessage, limits: ChannelLimits) -> str:
    """Why a channel with these limits can't send a message; empty if it can."""
    if limits.length and limits.measure(message.content) > limits.length:
        return f"The text is longer than {limits.length:,} ({limits.unit})."
    return media_refusal(message, limits)


def delivery_key(message: OutboundMessage) -> str:
    """The same 32 characters for the same message, by which its service, or a search, finds it again."""
    return hashlib.sha256(message.id.encode(errors="replace")).hexdigest()[:32]
