"""Server-sent events: cuts the bytes of a stream, however they arrive, into the data of its events.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from typing import Final

LONGEST: Final = 16 * 1024 * 1024
"""Bytes of one event."""


class EventStream:
    """The events of one stream. Their names, ids and retry times are dropped, and so are comments.

    The data is JSON, which may begin with a space.
    """

    def __init__(self) -> None:
        self._rest = b"\n"

    def feed(self, data: bytes) -> list[bytes]:
        """The data of every event that is complete now. Raises ConnectionError where one has no end."""
        if len(self._rest) > LONGEST:
            raise ConnectionError(f"its stream has an event of more than {LONGEST >> 20} MB")
        data = self._rest + data
        held = b""
        if b"\r" in data:
            held = b"\r" if data.endswith(b"\r") else b""  # its line feed may be yet to come
            data = data.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        end = data.rfind(b"\n\n")
        self._rest = data[end + 1 :] + held
        return _payloads(data[: end + 1]) if end >= 0 else []

    def close(self) -> list[bytes]:
        """The data of an event that the end of the stream cut off; a bare JSON object counts as one."""
        rest, self._rest = self._rest.strip(), b"\n"
        return [rest] if rest.startswith(b"{") else _payloads(b"\n%s\n" % rest)


def _payloads(events: bytes) -> list[bytes]:
    """The data of whole events; an event has one line of data, with few exceptions."""
    first, *pieces = events.split(b"\ndata:")
    payloads = [piece[:end] for piece in pieces if (end := piece.find(b"\n")) > 0]
    if len(payloads) == len(pieces) and not first.startswith(b"\n\xef\xbb\xbf"):
        return payloads
    return [payload for event in events.split(b"\n\n") if (payload := _payload(event))]


def _payload(event: bytes) -> bytes:
    fields = [line.removeprefix(b"\xef\xbb\xbf").partition(b":") for line in event.split(b"\n")]
    return b"\n".join([value.removeprefix(b" ") for name, _, value in fields if name == b"data"])
