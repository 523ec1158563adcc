"""Server-sent events: cuts the bytes of a stream, however they arrive, into the data of its events.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""


class EventStream:
    """The events of one stream. Comments, ids and retry times are dropped; of the event names only `error` matters."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The data of every event that is complete now."""
        data = self._rest + data
        held = b""
        if b"\r" in data:
            held = b"\r" if data.endswith(b"\r") else b""  # its line feed may be yet to come
            data = data.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *blocks, rest = data.split(b"\n\n")
        self._rest = rest + held
        return [payload for block in blocks if (payload := _payload(block))]

    def close(self) -> list[bytes]:
        """The data of an event that the end of the stream cut off; a bare JSON object counts as one."""
        rest, self._rest = self._rest.strip(), b""
        payload = rest if rest.startswith(b"{") else _payload(rest)
        return [payload] if payload else []


def _payload(block: bytes) -> bytes:
    """The data of one event; the two shapes that providers send go the short way."""
    if block.startswith(b"data: ") and b"\n" not in block:
        return block[6:]
    name, _, line = block.partition(b"\n")
    if line.startswith(b"data: ") and b"\n" not in line and name.startswith(b"event: ") and name != b"event: error":
        return line[6:]
    return _any_payload(block.split(b"\n"))


def _any_payload(lines: list[bytes]) -> bytes:
    fields = [line.removeprefix(b"\xef\xbb\xbf").partition(b":") for line in lines]
    data = b"\n".join([value.removeprefix(b" ") for name, _, value in fields if name == b"data"])
    failed = any(name == b"event" and value.strip() == b"error" for name, _, value in fields)
    return b'{"error":%s}' % data if failed and data else data
