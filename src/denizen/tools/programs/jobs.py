"""Named commands that run in the background while the agent works (a dev server, a watcher)."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from denizen.errors import ToolRefused
from denizen.ports import Sandbox, Sandboxed
from denizen.tools.programs.process import BoundedOutput, run

MAX_OUTPUT_BYTES = 20_000  # bytes of a job's output that are kept: its beginning and its end
MAX_RUNNING = 8


@dataclass(slots=True)
class BackgroundJob:
    """A command under a name; `pid` is 0 until it has started."""

    name: str
    command: str
    pid: int = 0
    kept: BoundedOutput = field(default_factory=lambda: BoundedOutput(MAX_OUTPUT_BYTES))
    has_output: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[int | None] = field(init=False)

    @property
    def running(self) -> bool:
        """Whether it still runs."""
        return not self.task.done()

    @property
    def state(self) -> str:
        """Running, or how it ended."""
        if self.running:
            return "running"
        return "stopped" if self.task.cancelled() else f"ended with exit code {self.task.result()}"

    @property
    def output(self) -> str:
        """The output so far."""
        return self.kept.text("have it write to a file to see all").strip()

    def take(self, data: bytes) -> None:
        """Add to its output."""
        self.kept.add(data)
        self.has_output.set()


class Jobs:
    """The background commands of an agent, by session. They end when they are stopped, and with the agent.

    `start` waits up to `patience` seconds for the first output of one.
    """

    def __init__(self, patience: float = 2.0) -> None:
        self._patience = patience
        self._jobs: dict[tuple[str, str], BackgroundJob] = {}

    async def start(self, session_key: str, name: str, command: str, wrapped: Sandboxed, folder: Path) -> BackgroundJob:
        """Start a command in `folder`, and wait a moment for its first output.

        Raises ToolRefused when it can't be started, when one of that name is running, or too many are.
        """
        self.check(session_key, name)
        job = self._jobs[session_key, name] = BackgroundJob(name, command)

        def started(pid: int) -> None:
            job.pid = pid

        job.task = asyncio.create_task(run(wrapped, folder, seconds=None, take=job.take, started=started))
        has_output = asyncio.create_task(job.has_output.wait())
        try:
            await asyncio.wait([job.task, has_output], timeout=self._patience, return_when=asyncio.FIRST_COMPLETED)
        finally:
            has_output.cancel()
        if job.task.done() and (failure := job.task.exception()):
            del self._jobs[session_key, name]
            raise failure
        return job

    def check(self, session_key: str, name: str) -> None:
        """Raise ToolRefused when one of that name is running, or too many are."""
        running = [job for job in self.of(session_key) if job.running]
        if any(job.name == name for job in running):
            raise ToolRefused(f"{name} is running already; stop it first, or take another name")
        if len(running) >= MAX_RUNNING:
            raise ToolRefused(f"{MAX_RUNNING} commands are running in the background; stop one first")

    def of(self, session_key: str) -> Sequence[BackgroundJob]:
        """The session's commands, those that have ended included."""
        jobs = [*self._jobs.items()]  # copied at once: threads look at it, too
        return [job for (key, _), job in jobs if key == session_key]

    def find(self, session_key: str, name: str) -> BackgroundJob:
        """The session's command of that name. Raises ToolRefused if there is none."""
        job = self._jobs.get((session_key, name))
        if job is None:
            known = ", ".join(job.name for job in self.of(session_key)) or "none"
            raise ToolRefused(f"there is no background command {name!r}; available: {known}")
        return job

    async def stop(self, job: BackgroundJob) -> None:
        """End it, with all that it started."""
        job.task.cancel()
        await asyncio.wait([job.task])

    async def end(self) -> None:
        """Stop and forget all of them."""
        for key, job in [*self._jobs.items()]:
            await self.stop(job)
            del self._jobs[key]

    def wrap(
        self, session_key: str, sandbox: Sandbox, argv: Sequence[str], *, workspace: Path, network: bool
    ) -> Sandboxed:
        """The command in the sandbox; where the session's running commands have a network of their own, in that.

        What leaves the sandbox, or may use the network, keeps the machine's.
        """
        from denizen.tools.programs import join

        pid = 0
        for job in self.of(session_key) if sandbox.confines and not network else ():
            with suppress(OSError):  # it has ended meanwhile, or has the machine's network
                if job.running and join.own_network(str(job.pid)):
                    pid = job.pid
                    break
        if not pid:
            return sandbox.wrap(argv, workspace=workspace, network=network)
        wrapped = sandbox.wrap(argv, workspace=workspace, network=True)  # only in the network that it joins
        joins = [str(Path(sys.executable).resolve()), "-I", "-S", join.__file__, str(pid)]
        return msgspec.structs.replace(wrapped, argv=[*joins, *wrapped.argv])
