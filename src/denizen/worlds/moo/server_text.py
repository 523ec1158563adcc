"""What a server says, once the bytes are read: the types that pass between the rooms of this world."""

from collections.abc import Mapping, Sequence

import msgspec


class ServerLine(msgspec.Struct, frozen=True):
    """A line that nobody's command asked for: text without markers, colours or wrapping.

    `channel` (page, say, emote, whisper) and `talker` are GMCP's, and proven; empty where the server said nothing of
    it. What the text itself says of its sender proves nothing.
    """

    text: str
    channel: str = ""
    talker: str = ""
    is_unproven: bool = False
    """Whether the server names the talker of all that is said, and named none here."""
    is_written: bool = False
    """Whether somebody wrote it all the same, as the first line of a page."""

    @property
    def may_be_said(self) -> bool:
        """Whether somebody may have said it: where the server doesn't name all talkers, any line."""
        return bool(self.channel) or self.is_written or not self.is_unproven


class CommandOutput(msgspec.Struct, frozen=True):
    """What one command gave: its own lines, in order, those that come after the prompt included.

    `problem` says why it is incomplete: a time-out, a lost connection; empty: it is whole.
    """

    command: str
    lines: Sequence[str] = ()
    problem: str = ""


class Room(msgspec.Struct, frozen=True):
    """Where we are: its number without `#`, and its exits, direction → number, as far as the server told them."""

    num: str
    name: str
    exits: Mapping[str, str] = {}
