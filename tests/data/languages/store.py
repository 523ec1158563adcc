"""A store of parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

LIMIT = 100
names: dict[str, int] = {}


class Source(Protocol):
    def read(self) -> bytes: ...


@dataclass(frozen=True)
class Part:
    """One part on a shelf."""

    name: str
    count: int = 0
    tags: list[str] = field(default_factory=list)

    @property
    def missing(self) -> bool:
        """Whether none is left."""
        return self.count == 0


# Keeps parts by name.
class Store(dict[str, Part]):
    class Full(Exception):
        pass

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source

    def add(self, part: Part) -> None:
        if len(self) >= LIMIT:
            raise Store.Full(part.name)
        self[part.name] = part

    async def load(self) -> None:
        """Read all parts."""

        def parse(line: str) -> Part:
            return Part(**json.loads(line))

        for line in self.source.read().decode().splitlines():
            self.add(parse(line))


def missing(store: Store) -> Iterator[str]:
    """The names of what is gone."""
    return (part.name for part in store.values() if part.missing)


if __name__ == "__main__":
    print(list(missing(Store(open("parts")))))
