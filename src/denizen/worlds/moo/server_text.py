"""A server's text as data: the types that the modules of this world exchange."""

from collections.abc import Mapping, Sequence

import msgspec


class ServerLine(msgspec.Struct, frozen=True):
    """An unsolicited line: text without markers, colours or wrapping.

    `channel` (page, say, emote, whisper) and `talker` are GMCP's, and proven; empty if the server said nothing of
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
    """The output of one command: its own lines in order, including those that come after the prompt.

    `problem` says why it is incomplete: a time-out, a lost connection; empty: it is whole.
    """

    command: str
    lines: Sequence[str] = ()
    problem: str = ""


class Room(msgspec.Struct, frozen=True):
    """The agent's room: its number without `#`, and its exits, direction → number, if the server sent them."""

    num: str
    name: str
    exits: Mapping[str, str] = {}
