"""Events as JSON, one object a line, for programs that run `denizen`."""

from collections.abc import Sequence
from typing import Any, Self

import msgspec

from denizen.cli.approval import Person
from denizen.cli.output import write
from denizen.config.redact import map_text
from denizen.errors import ModelError
from denizen.events import Done, RunEvent, RunResult
from denizen.ports import Answer, Ask, Control, Parked


class JsonLines:
    """The host of `--json`: every event on standard output, the last of them `done`, whatever happens.

    Text is exact here: JSON escapes what could harm a terminal.
    """

    def __init__(self, person: Person) -> None:
        self._person = person
        self._encoder = msgspec.json.Encoder(enc_hook=_plain)
        self._done = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if error and not self._done and not isinstance(error, BrokenPipeError):
            stop = "error" if isinstance(error, Exception) else "cancelled"
            self.emit(Done(RunResult(reply="", stop_reason=stop, error=str(error))))

    def emit(self, event: RunEvent) -> None:
        """Print it."""
        self._done = isinstance(event, Done)
        write(self._encoded(event).decode() + "\n")

    def controls(self) -> Sequence[Control]:
        """What the person said meanwhile."""
        return self._person.said()

    async def ask(self, request: Ask) -> Answer | Parked:
        """Ask the person."""
        return await self._person.ask(request)

    def _encoded(self, event: RunEvent) -> bytes:
        try:
            return self._encoder.encode(event)
        except UnicodeEncodeError:  # half a character, as in a file name that isn't UTF-8
            return self._encoder.encode(map_text(event, lambda text: text.encode(errors="replace").decode()))


def _plain(value: Any) -> Any:
    return value.message if isinstance(value, ModelError) else str(value)
