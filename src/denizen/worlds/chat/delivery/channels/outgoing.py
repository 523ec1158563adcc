"""Checks before sending a message, and the key that identifies it at the service."""

import hashlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime, timedelta

from denizen.ports import ChannelLimits, OutboundMessage, RateLimited
from denizen.worlds.chat.delivery.channels.media import media_refusal

CONNECT_RETRY_S = 5.0
"""The delay before an unreachable service is tried again."""
REFUSED_RETRY_S = 60.0
"""The delay before a service that refuses the account is tried again."""
_CLOCK_TOLERANCE = timedelta(seconds=30)


def send_refusal(message: OutboundMessage, limits: ChannelLimits) -> str:
    """Why a channel with these limits can't send a message; empty if it can."""
    if limits.length and limits.measure(message.content) > limits.length:
        return f"The text is longer than {limits.length:,} ({limits.unit})."
    return media_refusal(message, limits)


def earliest_arrival(message: OutboundMessage) -> datetime | None:
    """When a message that may have been sent was first tried, by the service's clock; None if unknown."""
    return message.tried_at - _CLOCK_TOLERANCE if message.tried_at else None


def delivery_key(message: OutboundMessage) -> str:
    """32 characters derived from the message's id, by which the message can be found at its service."""
    return hashlib.sha256(message.id.encode(errors="replace")).hexdigest()[:32]


@contextmanager
def rate_limited_if(is_flood: Callable[[Exception], bool]) -> Generator[None]:
    """Turn a preview's flood-limit errors into RateLimited."""
    try:
        yield
    except Exception as error:
        if is_flood(error):
            raise RateLimited(f"It takes no previews for now: {error}") from error
        raise
