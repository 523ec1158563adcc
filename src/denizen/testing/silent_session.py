"""A session in which nothing was said, for what may only look at one."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from denizen.entries import AnyEntry
from denizen.errors import SessionError
from denizen.ports import View
from denizen.testing.fake_clock import FakeClock
from denizen.testing.scripted import ScriptedModel


@dataclass(slots=True)
class SilentSession:
    """Nothing was said in it, and nothing can be."""

    key: str = "silent"
    head: str = ""
    entries: Sequence[AnyEntry] = ()
    warnings: Sequence[str] = field(default_factory=list)
    moved: bool = False

    async def append(self, entry: AnyEntry, *, expect_head: str | None = None) -> str:
        raise SessionError("nothing may be written here: say what is to be done")

    async def move_head(self, to: str) -> None:
        raise SessionError("nothing may be moved here: say what is to be done")

    async def sync(self) -> None:
        """Nothing is written."""

    async def lost(self) -> None:
        """Nothing is held."""

    async def close(self) -> None:
        """Nothing is open."""


def silent_view() -> View:
    """The view of such a session for a driver or a context policy."""
    return View(SilentSession(), ScriptedModel(), 1000, 100, None, FakeClock())
