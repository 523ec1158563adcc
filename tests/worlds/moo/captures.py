"""What a real server said, as recorded in tests/data/moo."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

SCENES = ("build", "delimiters", "login", "mail", "pages", "typeahead")
_DATA = Path(__file__).parents[2] / "data" / "moo"


class Chunk(msgspec.Struct, frozen=True):
    """Bytes that came `in` or went `out` at once; `t` in seconds."""

    t: float
    who: str
    dir: str
    hex: str

    @property
    def data(self) -> bytes:
        return bytes.fromhex(self.hex)


def chunks(scene: str) -> Sequence[Chunk]:
    """All of a scene, in order."""
    _, *lines = (_DATA / f"{scene}.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Chunk) for line in lines]


def sessions(scene: str) -> dict[str, list[bytes]]:
    """What the server sent to each user."""
    heard: dict[str, list[bytes]] = {}
    for chunk in chunks(scene):
        if chunk.dir == "in":
            heard.setdefault(chunk.who, []).append(chunk.data)
    return heard
