"""Telnet's wire form (RFC 854): the commands in a stream of bytes, however it was split, and how to write them."""

from collections.abc import Iterator
from enum import IntEnum

import msgspec

IAC = 255
MAX_SUBNEGOTIATION_BYTES = 1 << 20
"""Bytes of a subnegotiation; a longer one is dropped."""


class Verb(IntEnum):
    """The verbs of two- and three-byte commands."""

    EOR = 239
    SE = 240
    GA = 249
    SB = 250
    WILL = 251
    WONT = 252
    DO = 253
    DONT = 254


class Option(IntEnum):
    """The options we know."""

    TTYPE = 24
    END_OF_RECORD = 25
    NAWS = 31
    CHARSET = 42
    MSSP = 70
    GMCP = 201


class TelnetText(msgspec.Struct, frozen=True):
    """Bytes of the text itself."""

    data: bytes


class PromptMark(msgspec.Struct, frozen=True):
    """The server has written a prompt and waits for a line (GA or EOR)."""


class OptionRequest(msgspec.Struct, frozen=True):
    """One side's word on an option: WILL, WONT, DO or DONT."""

    verb: int
    option: int


class Subnegotiation(msgspec.Struct, frozen=True):
    """The content of a subnegotiation, unescaped."""

    option: int
    data: bytes


Event = TelnetText | PromptMark | OptionRequest | Subnegotiation


class TelnetParser:
    """Takes the commands out of a stream. How it is split changes only where one text ends and the next begins."""

    def __init__(self) -> None:
        self._held = bytearray()  # a command that isn't whole yet
        self._searched = 0  # how much of it, where it is a subnegotiation, has no end
        self._too_long = False

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events in the bytes so far; what an unfinished command has is held back."""
        held, at = self._held, 0
        held += data
        while at < len(held):
            if held[at] != IAC:
                mark = held.find(IAC, at)
                end = len(held) if mark < 0 else mark
                yield TelnetText(bytes(held[at:end]))
            else:
                end, event = self._command(at)
                if not end:
                    break
                if event:
                    yield event
            at = end
        del held[:at]
        if len(held) > MAX_SUBNEGOTIATION_BYTES + 1:
            del held[3:-1]  # its last byte may be half of its end
            self._too_long, self._searched = True, 0

    def _command(self, at: int) -> tuple[int, Event | None]:
        """Where the command at `at` ends, and what it is; 0: it isn't whole yet."""
        held = self._held
        if len(held) < at + 2:
            return 0, None
        match held[at + 1]:
            case Verb.SB:
                return self._subnegotiation(at)
            case Verb.WILL | Verb.WONT | Verb.DO | Verb.DONT as verb:
                return (at + 3, OptionRequest(verb, held[at + 2])) if len(held) > at + 2 else (0, None)
            case Verb.GA | Verb.EOR:
                return at + 2, PromptMark()
            case verb:
                return at + 2, TelnetText(b"\xff") if verb == IAC else None

    def _subnegotiation(self, at: int) -> tuple[int, Event | None]:
        held, mark = self._held, max(at + 2, self._searched)
        while (mark := held.find(IAC, mark)) >= 0 and mark + 1 < len(held):
            if held[mark + 1] == IAC:
                mark += 2
                continue
            body = bytes(held[at + 2 : mark]).replace(b"\xff\xff", b"\xff")
            whole = held[mark + 1] == Verb.SE and body and mark - at <= MAX_SUBNEGOTIATION_BYTES and not self._too_long
            self._searched, self._too_long = 0, False
            # cut off by another command: that one counts
            end = mark + 2 if held[mark + 1] == Verb.SE else mark
            return end, Subnegotiation(body[0], body[1:]) if whole else None
        self._searched = (len(held) if mark < 0 else mark) - at  # what is before it is taken off now
        return 0, None


def request(verb: Verb, option: int) -> bytes:
    """WILL, WONT, DO or DONT as bytes."""
    return bytes([IAC, verb, option])


def subnegotiation(option: int, data: bytes) -> bytes:
    """A subnegotiation as bytes."""
    return bytes([IAC, Verb.SB, option]) + data.replace(b"\xff", b"\xff\xff") + bytes([IAC, Verb.SE])
