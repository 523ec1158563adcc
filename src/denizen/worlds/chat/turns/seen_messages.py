"""Recognises messages that a service brings again with new ids."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta

from denizen.ports import InboundMessage
from denizen.worlds.commands import without_escape

SAME_TIME = timedelta(seconds=2)
"""Two deliveries of a message may have times that differ by this: some services round them, or stamp only replays."""
MAX_COMPARED = 1000
"""The latest messages of a channel, with which a replay is compared."""


class SeenMessages:
    """The messages that a channel brought before it connected again.

    One that isn't later than the last of them, and equals one in chat, sender, text and time, is a replay: as many
    copies as there were, and no more.
    """

    def __init__(self, messages: Iterable[InboundMessage]) -> None:
        self._times: dict[tuple[str, str, str], list[datetime]] = defaultdict(list)
        self._last: datetime | None = None
        for each in messages:
            if each.sent_at:
                self._times[_key(each)].append(each.sent_at)
                self._last = max(each.sent_at, self._last or each.sent_at)

    def take(self, message: InboundMessage) -> bool:
        """Whether the message is a replay; it then counts as brought again."""
        sent_at = message.sent_at
        if sent_at is None or self._last is None or sent_at > self._last:
            return False
        times = self._times.get(_key(message), [])
        nearest = min(times, key=lambda time: abs(time - sent_at), default=None)
        if nearest is None or abs(nearest - sent_at) > SAME_TIME:
            return False
        times.remove(nearest)
        return True


def _key(message: InboundMessage) -> tuple[str, str, str]:
    return message.chat, message.sender, without_escape(message.content)
