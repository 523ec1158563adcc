"""Negotiates telnet options, and reads their values (decisions, "Telnet options")."""

from importlib.metadata import version
from typing import Any

import msgspec

from denizen.worlds.moo.telnet import (
    Event,
    Option,
    OptionRequest,
    PromptMark,
    Subnegotiation,
    Verb,
    request,
    subnegotiation,
)

CLIENT, TERMINAL = "denizen", "XTERM-256COLOR"
MTTS = 77
"""ANSI, UTF-8, 256 colours, and a screen reader, since a program reads it."""
COLUMNS, ROWS = 500, 50
"""A window so wide that servers which heed it don't wrap."""
PACKAGES = ("Char 1", "Room 1", "Comm 1", "MSSP 1")

_OURS = frozenset({Option.TTYPE, Option.NAWS, Option.CHARSET})
"""Options that we turn on if asked."""
_THEIRS = frozenset({Option.GMCP, Option.MSSP, Option.END_OF_RECORD, Option.CHARSET})
"""Options that the server may turn on. Not suppress-go-ahead: its marks show where output ends; nor sound."""
_AFTER_PROMPT = frozenset({Option.END_OF_RECORD})
"""DjangoMOO sends no more GMCP after its first prompt until another option changes: this one is kept for that."""
_IS, _SEND = b"\x00", b"\x01"
_REQUEST, _ACCEPTED, _REJECTED = b"\x01", b"\x02", b"\x03"
_NAME, _VALUE = b"\x01", b"\x02"


class Gmcp(msgspec.Struct, frozen=True):
    """A value that the server sent beside its text."""

    package: str
    value: Any = None


class Negotiator:
    """Answers requests, each once: a request that changes nothing, or is refused already, has no answer."""

    def __init__(self) -> None:
        self.ours: set[int] = set()
        self.theirs: set[int] = set()
        self._refused: set[OptionRequest] = set()
        self._postponed: set[int] = set()
        self._prompted = False
        self._terminal_asked = 0

    def answer(self, event: Event) -> bytes:
        """The bytes to send in reply."""
        match event:
            case OptionRequest():
                return self._request(event)
            case Subnegotiation():
                return self._subnegotiation(event)
            case PromptMark():
                self._prompted = True
                postponed, self._postponed = self._postponed, set()
                return b"".join(self._accept(option) for option in sorted(postponed))
            case _:
                return b""

    def _request(self, asked: OptionRequest) -> bytes:
        option = asked.option
        match asked.verb:
            case Verb.WILL if option not in _THEIRS:
                return self._refuse(asked, Verb.DONT)
            case Verb.WILL if option in _AFTER_PROMPT and not self._prompted:
                self._postponed.add(option)
            case Verb.WILL:
                return self._accept(option)
            case Verb.DO if option not in _OURS:
                return self._refuse(asked, Verb.WONT)
            case Verb.DO if option not in self.ours:
                self.ours.add(option)
                return request(Verb.WILL, option) + _first_words(option)
            case Verb.WONT:
                self._postponed.discard(option)
                return self._end(self.theirs, option, Verb.DONT)
            case Verb.DONT:
                return self._end(self.ours, option, Verb.WONT)
        return b""

    def _accept(self, option: int) -> bytes:
        if option in self.theirs:
            return b""
        self.theirs.add(option)
        return request(Verb.DO, option) + _first_demand(option)

    def _refuse(self, asked: OptionRequest, verb: Verb) -> bytes:
        if asked in self._refused:
            return b""
        self._refused.add(asked)
        return request(verb, asked.option)

    def _end(self, enabled: set[int], option: int, verb: Verb) -> bytes:
        if option not in enabled:
            return b""
        enabled.remove(option)
        return request(verb, option)

    def _subnegotiation(self, said: Subnegotiation) -> bytes:
        if said.option == Option.TTYPE and said.data == _SEND and Option.TTYPE in self.ours:
            stages = [CLIENT, TERMINAL, f"MTTS {MTTS}"]
            name = stages[self._terminal_asked] if self._terminal_asked < len(stages) else TERMINAL
            self._terminal_asked += 1
            return subnegotiation(Option.TTYPE, _IS + name.encode())
        if said.option == Option.CHARSET and said.data[:1] == _REQUEST:
            offered = said.data[2:].split(said.data[1:2]) if len(said.data) > 2 else []
            chosen = next((name for name in offered if name.upper() == b"UTF-8"), b"")
            return subnegotiation(Option.CHARSET, _ACCEPTED + chosen if chosen else _REJECTED)
        return b""


def _first_words(option: int) -> bytes:
    """The bytes to send once an option of ours is on."""
    if option == Option.NAWS:
        return subnegotiation(option, COLUMNS.to_bytes(2, "big") + ROWS.to_bytes(2, "big"))
    return subnegotiation(option, _REQUEST + b";UTF-8") if option == Option.CHARSET else b""


def _first_demand(option: int) -> bytes:
    """The bytes to send once an option of the server's is on."""
    if option == Option.GMCP:
        return gmcp("Core.Hello", {"client": CLIENT, "version": version("denizen")}) + gmcp(
            "Core.Supports.Set", PACKAGES
        )
    return subnegotiation(option, b"") if option == Option.MSSP else b""


def gmcp(package: str, value: Any) -> bytes:
    """A GMCP value as bytes."""
    return subnegotiation(Option.GMCP, package.encode() + b" " + msgspec.json.encode(value))


def gmcp_said(said: Subnegotiation) -> Gmcp | None:
    """The GMCP value in it; None: it has none that can be read."""
    package, _, value = said.data.partition(b" ")
    try:
        return Gmcp(package.decode("ascii"), msgspec.json.decode(value) if value.strip() else None)
    except (ValueError, RecursionError):
        return None


def server_status(said: Subnegotiation) -> dict[str, str]:
    """An MSSP server's variables; the last of several values."""
    pairs = (part.partition(_VALUE) for part in said.data.split(_NAME)[1:])
    return {name.decode("latin-1"): value.rpartition(_VALUE)[2].decode("utf-8", "replace") for name, _, value in pairs}
