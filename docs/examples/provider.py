"""A provider: `program:COMMAND` is a model that is a program, which reads the message and prints the answer."""

import asyncio
import shlex
from collections.abc import AsyncIterator, Mapping
from subprocess import PIPE

from denizen import run_agent_sync
from denizen.config.settings import ProviderSettings
from denizen.errors import ModelError
from denizen.events import Failed, Finished, StreamEvent, TextDelta
from denizen.messages import AssistantMessage, Text, Usage
from denizen.ports import Limits, ModelRequest
from denizen.runtime.clock import Clock


class Program:
    """A model that runs on this machine and costs nothing."""

    local = True

    def __init__(self, command: str) -> None:
        self.name = f"program:{command}"
        self._argv = shlex.split(command)

    def limits(self, session_key: str = "") -> Limits:
        """Tokens that it sees, and that it answers."""
        return Limits(window=8_000, max_output=2_000)

    async def close(self) -> None:
        """Nothing to give back."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Deltas where they are asked for, then one Finished or Failed; nothing is raised."""
        try:
            process = await asyncio.create_subprocess_exec(*self._argv, stdin=PIPE, stdout=PIPE)
        except OSError as error:
            yield Failed(ModelError(f"{self.name} can't be started: {error.strerror}"))
            return
        printed, _ = await process.communicate(request.messages[-1].text.encode())
        if process.returncode:
            yield Failed(ModelError(f"{self.name} failed", kind="timeout"))  # of a kind that is tried again
            return
        text = printed.decode()
        if request.stream:
            yield TextDelta(text)
        yield Finished(AssistantMessage([Text(text)], self.name, Usage(cost_usd=0.0)))


def open_program(model: str, _settings: ProviderSettings, _environ: Mapping[str, str], _clock: Clock) -> Program:
    """What the entry point names: makes the model of `program:…`."""
    return Program(model)


if __name__ == "__main__":
    print(run_agent_sync("hello, world", model=Program("grep -o hello")).reply.strip())
