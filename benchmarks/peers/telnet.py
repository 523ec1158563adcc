"""A stream of a MUD read by one telnet implementation: python -m benchmarks.peers.telnet NAME FILE ROUNDS CHUNK.

Prints JSON: the CPU seconds of each round, and what was found in the last. Each implementation runs where it is
installed.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

GMCP = 201


@dataclass(slots=True)
class Found:
    """Bytes of text, GMCP messages, prompt marks."""

    text: int = 0
    messages: int = 0
    marks: int = 0


Feed = Callable[[bytes], None]


def twisted(found: Found) -> Feed:
    from twisted.conch.telnet import Telnet
    from twisted.internet.testing import StringTransport

    class Client(Telnet):
        def applicationDataReceived(self, data: bytes) -> None:  # noqa: N802
            found.text += len(data)

        def enableRemote(self, option: bytes) -> bool:  # noqa: N802
            return True

        def unhandledSubnegotiation(self, command: bytes, data: list[bytes]) -> None:  # noqa: N802
            found.messages += command[0] == GMCP

        def unhandledCommand(self, command: bytes, argument: bytes | None) -> None:  # noqa: N802
            found.marks += 1

    client = Client()
    client.makeConnection(StringTransport())
    return client.dataReceived


def telnetlib3(found: Found) -> Feed:
    from telnetlib3 import TelnetWriter, telopt

    class Wire:
        def write(self, data: bytes) -> None: ...

        def is_closing(self) -> bool:
            return False

        def get_extra_info(self, name: str, default: object = None) -> object:
            return default

    def message(package: str, value: object) -> None:
        found.messages += 1

    def mark(command: bytes) -> None:
        found.marks += 1

    writer = TelnetWriter(Wire(), None, client=True)
    writer.passive_do = {telopt.GMCP}
    writer.set_ext_callback(telopt.GMCP, message)
    writer.set_iac_callback(telopt.GA, mark)

    def feed(data: bytes) -> None:
        at = 0
        while at < len(data):
            if not writer.is_oob:
                end = data.find(255, at)
                end = len(data) if end < 0 else end
                found.text += end - at
                at = end
            if at < len(data):
                found.text += writer.feed_byte(data[at : at + 1])
                at += 1

    return feed


def telnetlib(found: Found) -> Feed:
    warnings.simplefilter("ignore", DeprecationWarning)
    from telnetlib import SB, SE, Telnet

    reader = Telnet()

    def option(socket: object, command: bytes, name: bytes) -> None:
        if command == SE:
            found.messages += reader.read_sb_data()[:1] == bytes([GMCP])

    reader.set_option_negotiation_callback(option)

    def feed(data: bytes) -> None:
        reader.rawq += data
        reader.process_rawq()
        found.text += len(reader.cookedq)
        reader.cookedq = b""

    assert SB
    return feed


def denizen(found: Found) -> Feed:
    from denizen.worlds.moo.negotiation import gmcp_said
    from denizen.worlds.moo.telnet import PromptMark, Subnegotiation, TelnetParser, TelnetText

    parser = TelnetParser()

    def feed(data: bytes) -> None:
        for event in parser.feed(data):
            match event:
                case TelnetText(text):
                    found.text += len(text)
                case PromptMark():
                    found.marks += 1
                case Subnegotiation(option=201) if gmcp_said(event):
                    found.messages += 1
                case _:
                    pass

    return feed


def denizen_lines(found: Found) -> Feed:
    from denizen.worlds.moo.lines import LineReader, Markers
    from denizen.worlds.moo.negotiation import gmcp_said
    from denizen.worlds.moo.telnet import PromptMark, Subnegotiation, TelnetParser, TelnetText

    parser, reader = TelnetParser(), LineReader(Markers(">>START<<", ">>END<<", ">>OWN<<", ">>OWN-END<<"), 80)

    def feed(data: bytes) -> None:
        for event in parser.feed(data):
            match event:
                case TelnetText(text):
                    found.text += len(text)
                    list(reader.feed(text))
                case PromptMark():
                    found.marks += 1
                    list(reader.prompt())
                case Subnegotiation(option=201) if gmcp_said(event):
                    found.messages += 1
                case _:
                    pass

    return feed


READERS = {each.__name__: each for each in (twisted, telnetlib3, telnetlib, denizen, denizen_lines)}


def main(name: str, file: str, rounds: str, chunk: str) -> None:
    """Read the file so many times, in chunks of that size."""
    data, size = Path(file).read_bytes(), int(chunk)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    seconds, found = [], Found()
    for _ in range(int(rounds) + 1):  # the first warms up
        found = Found()
        feed = READERS[name](found)
        begun = time.process_time()
        for piece in pieces:
            feed(piece)
        seconds.append(time.process_time() - begun)
    print(json.dumps({"seconds": seconds[1:], "found": asdict(found)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
