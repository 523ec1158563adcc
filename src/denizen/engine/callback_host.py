"""The host of a program: events go to a function."""

import inspect
from collections.abc import Callable, Sequence

from denizen.events import RunEvent
from denizen.ports import Answer, Ask, Control, NoControls, Parked, TurnIO, with_changed


class CallbackHost:
    """Passes events to `on_event` and to another `host`; without one, a turn that must ask is parked."""

    def __init__(self, on_event: Callable[[RunEvent], object] | None = None, host: TurnIO | None = None) -> None:
        self._on_event = on_event
        self._host = with_changed(host) if host else None

    def emit(self, event: RunEvent) -> None:
        """Pass the event on. Raises TypeError if `on_event` is async."""
        if self._host is not None:
            self._host.emit(event)
        left = self._on_event(event) if self._on_event else None
        if left is not None and inspect.iscoroutine(left):
            left.close()
            raise TypeError(f"on_event gave a coroutine: make it an `async def` function; it is {self._on_event!r}")

    def controls(self) -> Sequence[Control]:
        return self._host.controls() if self._host else ()

    async def changed(self) -> None:
        await (self._host or NoControls()).changed()

    async def ask(self, request: Ask) -> Answer | Parked:
        return await self._host.ask(request) if self._host else Parked()
