"""Whatever several processes and people do to a session in turn, who opens it has what its file says."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from denizen.entries import NoteEntry
from denizen.errors import SessionError
from denizen.ports import Session
from denizen.runtime.clock import SystemClock
from denizen.sessions import JsonlStore

DEEDS = st.sampled_from(["open", "append", "move the head", "close", "remove"])
ACCIDENTS = st.sampled_from(["delete the lock", "cut the end off", "keep a copy", "put it back", "put it in its place"])
STEPS = st.lists(st.tuples(st.integers(0, 2), DEEDS | ACCIDENTS), max_size=40)


class World:
    """Three stores of one folder, each as a process has it, and the sessions that they have open."""

    def __init__(self, folder: Path) -> None:
        self.stores = [JsonlStore(folder, clock=SystemClock(), sync=False) for _ in range(3)]
        self.open: list[Session | None] = [None] * 3
        self.file = self.stores[0].path("work")
        self.copy = folder / "copy"

    async def step(self, who: int, what: str) -> None:
        """One deed of a process, or one accident to the file; what can't be done is left."""
        session = self.open[who]
        with suppress(SessionError, FileNotFoundError):
            match what:
                case "open" if session is None:
                    self.open[who] = await self._opened(who)
                case "append" if session:
                    await session.append(NoteEntry(text=f"by {who}"))
                case "move the head" if session:
                    await session.move_head(session.entries[len(session.entries) // 2].id)
                case "close" if session:
                    self.open[who] = None
                    await session.close()
                case "remove":
                    await self.stores[who].remove("work")
                case "delete the lock":
                    self.file.with_name(f"{self.file.name}.lock").unlink()
                case _ if not any(self.open):
                    self._accident(what)

    async def _opened(self, who: int) -> Session:
        session = await self.stores[who].open("work")
        assert [*session.entries] == [*await JsonlStore(self.file.parents[1], clock=SystemClock()).read("work")]
        return session

    def _accident(self, what: str) -> None:
        """To a file that nobody has open: no process could tell what others write into it meanwhile."""
        before = self.file.stat().st_ctime_ns
        match what:
            case "cut the end off":
                self.file.write_bytes(self.file.read_bytes()[:-20])
            case "keep a copy":
                shutil.copy2(self.file, self.copy)
            case "put it back":
                shutil.copy2(self.copy, self.file)
            case "put it in its place":
                self.copy.rename(self.file)
        while self.file.stat().st_ctime_ns == before:  # some kernels' clock for files ticks slowly
            os.utime(self.file)


async def live(steps: Sequence[tuple[int, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        for who, what in steps:
            await world.step(who, what)
        for session in filter(None, world.open):
            await session.close()


@settings(max_examples=300)
@given(STEPS)
def test_who_opens_a_session_has_what_its_file_says(steps: list[tuple[int, str]]) -> None:
    asyncio.run(live(steps))
