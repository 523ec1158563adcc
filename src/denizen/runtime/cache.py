"""A cache in memory with a limit on its size."""

from typing import Generic, TypeVar
from weakref import WeakValueDictionary

Value = TypeVar("Value")


class BoundedCache(Generic[Value]):
    """Values by key: at most `most` of them, of at most `room` in total. The oldest are dropped first.

    A value larger than `room` isn't kept, and displaces nothing.
    """

    def __init__(self, most: int, room: int) -> None:
        self._most = most
        self.room = room
        self._size = 0
        self._values: dict[str, tuple[Value, int]] = {}

    def put(self, key: str, value: Value, size: int) -> None:
        """Keep a value, in place of the key's old one."""
        if key in self._values:
            self.take(key)
        if size > self.room:
            return
        self._values[key] = value, size
        self._size += size
        while self._size > self.room or len(self._values) > self._most:
            oldest = next(iter(self._values))
            value, size = self._values.pop(oldest)
            self._size -= size
            self.dropped(oldest, value)

    def take(self, key: str) -> Value | None:
        """Take a value out; None if it isn't there (any more)."""
        if key not in self._values:
            return None
        value, size = self._values.pop(key)
        self._size -= size
        return value

    def dropped(self, key: str, value: Value) -> None:
        """Called for each value that is dropped."""


class SharedCache(BoundedCache[Value]):
    """One whose values are found for as long as somebody holds them, also after they were dropped."""

    def __init__(self, most: int, room: int) -> None:
        super().__init__(most, room)
        self._held = WeakValueDictionary[str, Value]()

    def dropped(self, key: str, value: Value) -> None:
        """Find it only where somebody holds it."""
        self._held[key] = value

    def take(self, key: str) -> Value | None:
        """Take a value out; None if it isn't there, and nobody holds it."""
        return super().take(key) or self._held.get(key)
