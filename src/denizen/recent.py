"""What was used last, kept in memory."""

from collections import OrderedDict
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """Values by key: at most `most`, whose sizes together are at most `room`. Those that were put in first go first.

    What is larger than that is not kept, and displaces nothing.
    """

    def __init__(self, most: int, room: int) -> None:
        self._most = most
        self._room = room
        self._size = 0
        self._values: OrderedDict[str, tuple[Value, int]] = OrderedDict()

    def put(self, key: str, value: Value, size: int) -> None:
        """Keep a value in place of the one that the key had."""
        self.take(key)
        if size > self._room:
            return
        self._values[key] = value, size
        self._size += size
        while self._size > self._room or len(self._values) > self._most:
            _, (_, size) = self._values.popitem(last=False)
            self._size -= size

    def take(self, key: str) -> Value | None:
        """Take a value out; None where it isn't there any more."""
        if key not in self._values:
            return None
        value, size = self._values.pop(key)
        self._size -= size
        return value
