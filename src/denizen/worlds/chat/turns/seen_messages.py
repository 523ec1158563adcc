"""Recognises messages that a service delivers again with new ids."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from denizen.ports import InboundMessage
from denizen.worlds.commands import without_escape

TIME_TOLERANCE = timedelta(seconds=2)
"""How much the times of two deliveries of a message may differ: some services round them, or stamp only replays."""
MAX_COMPARED_MESSAGES = 1000
"""How many of a channel's latest messages are compared."""


class SeenMessages:
    """The messages that a channel delivered before it reconnected.

    A message is a replay if it isn't newer than the last of them and matches one in chat, sender, text and time. Each
    of them matches only one replay.
    """

    def __init__(self, messages: Iterable[InboundMessage]) -> None:
        self._times: dict[tuple[str, str, str], list[datetime]] = defaultdict(list)
        self._last: datetime | None = None
        for each in messages:
            if each.sent_at:
                self._times[_key(each)].append(each.sent_at)
                self._last = max(each.sent_at, self._last or each.sent_at)

    def take_replay(self, message: InboundMessage) -> bool:
        """Whether the message is a replay. If so, the message that it matches is removed."""
        sent_at = message.sent_at
        if sent_at is None or self._last is None or sent_at > self._last:
            return False
        times = self._times.get(_key(message), [])
        nearest = min(times, key=lambda time: abs(time - sent_at), default=None)
        if nearest is None or abs(nearest - sent_at) > TIME_TOLERANCE:
            return False
        times.remove(nearest)
        return True


def _key(message: InboundMessage) -> tuple[str, str, str]:
    return message.chat, message.sender, without_escape(message.content)
