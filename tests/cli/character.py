"""`denizen moo run` as a program."""

import asyncio
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cli.gateway import PATIENCE


class CharacterProgram:
    """Runs Mason in a world, with these settings of its `[moo]`; `process` is the one that was started last."""

    process: Process

    def __init__(self, folder: Path, environ: Mapping[str, str], python: Sequence[str], settings: str) -> None:
        folder.mkdir()
        (folder / "SOUL.md").write_text("# Name\nMason\n")
        (folder / "denizen.toml").write_text(f'[moo]\nuser = "mason"\nidle_wakeup_seconds = 0.0\n{settings}')
        self._command = [*python, "-m", "denizen", "moo", "run", "--plain", str(folder)]
        self._environ = {**environ, "MOO_PASSWORD": "mason-password"}

    async def start(self) -> None:
        """Start it, and wait until it has signed in."""
        self.process = await asyncio.create_subprocess_exec(*self._command, stdout=PIPE, env=self._environ)
        assert self.process.stdout
        async with asyncio.timeout(PATIENCE):
            while "Signed in as Mason" not in (line := (await self.process.stdout.readline()).decode()):
                assert line

    async def end(self, number: int = signal.SIGTERM) -> int | None:
        """End it with a signal; its exit status."""
        if hasattr(self, "process"):
            if self.process.returncode is None:
                self.process.send_signal(number)
            await self.process.communicate()
            return self.process.returncode
        return None
