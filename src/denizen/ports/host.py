"""The host: what it gives a turn, and what a person may say while one runs."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from denizen.events import RunEvent
from denizen.messages import ToolCall
from denizen.ports.sandbox import Sandboxed

POLL_S = 0.1
"""Seconds between two looks for controls of a host that has no `changed`."""


class Answer(msgspec.Struct, frozen=True):
    """A person's answer to the question of `call_id`: whether the call may run, their words, and how long it holds.

    `unasked`: nobody was asked, or nobody answered, and `text` says so.
    """

    call_id: str
    allow: bool
    text: str = ""
    scope: Literal["once", "session", "always"] = "once"
    unasked: bool = False


class Parked(msgspec.Struct, frozen=True):
    """Nobody is there to answer: the turn waits, durably."""


class Ask(msgspec.Struct, frozen=True):
    """A question to the person: may this call run (`tool_name`, `args`), or any other (`tool_name` empty).

    `quotation`: the call repeats what the model has read, so that a yes given beforehand doesn't count.
    `diff` is what the call would change in files, if that is known beforehand.
    """

    call_id: str
    question: str
    tool_name: str = ""
    args: dict[str, Any] = {}
    quotation: bool = False
    diff: str = ""


class Steer(msgspec.Struct, frozen=True):
    """Say something to the agent while it works; heard before its next model call.

    A message whose `id` the session has already taken in isn't repeated.
    """

    text: str
    id: str = ""


class FollowUp(msgspec.Struct, frozen=True):
    """Say something when the agent is done; the turn then goes on with it. `id`: as `Steer`."""

    text: str
    id: str = ""


class Interrupt(msgspec.Struct, frozen=True):
    """Cut the model's answer short, drop the calls that haven't run, and go on with this instead. `id`: as `Steer`."""

    text: str
    id: str = ""


class Stop(msgspec.Struct, frozen=True):
    """End the turn at once: a model call, or a tool that runs, is cancelled."""


Control = Steer | FollowUp | Interrupt | Stop | Answer


class TurnIO(Protocol):
    """A turn's host: it shows events, passes on controls and asks the person."""

    def emit(self, event: RunEvent) -> None:
        """Show an event."""

    def controls(self) -> Sequence[Control]:
        """Hand over the controls that arrived since the last call."""

    async def changed(self) -> None:
        """Return once a control has arrived that `controls` hasn't handed over: at once if one is waiting.

        A turn awaits it while a model or a tool works, again after each control, and cancels it at its end.
        """

    async def ask(self, request: Ask) -> Answer | Parked:
        """Ask the person."""


class NoControls:
    """Half a host: nothing is said to a turn while it runs."""

    def controls(self) -> Sequence[Control]:
        return ()

    async def changed(self) -> None:
        await asyncio.Event().wait()


@runtime_checkable
class SavingHost(Protocol):
    """A host in which the person may have typed text into files that isn't saved yet: an editor."""

    async def save(self, calls: Sequence[ToolCall]) -> None:
        """Save the files that the calls name, before any of them is previewed or runs."""


@runtime_checkable
class TerminalHost(Protocol):
    """A host that can show commands in a terminal of its own while they run: an editor."""

    async def run_command(
        self, call_id: str, command: Sandboxed, folder: Path, *, seconds: float, take: Callable[[bytes], None]
    ) -> int | None:
        """Run the command of a call; its exit status (below 0: the signal), None when its time was over.

        `take` gets its output. On return, also when cancelled, all that it started has ended, and its `afterwards` was
        called. Raises ToolRefused when it can't be run.
        """


async def save_files(io: TurnIO, calls: Sequence[ToolCall]) -> None:
    """Have the host save what the person typed into files that the calls name."""
    if isinstance(io, SavingHost):
        await io.save(calls)


def with_changed(io: TurnIO) -> TurnIO:
    """The host; one written before `changed` existed is wrapped in one that polls its controls."""
    return io if hasattr(io, "changed") else _PolledHost(io)


class _PolledHost:
    """Adds `changed` to a host that lacks it. It is the only place that polls while a turn runs."""

    def __init__(self, host: TurnIO) -> None:
        self._host = host
        self._arrived: list[Control] = []
        self.emit = host.emit
        self.ask = host.ask

    def controls(self) -> Sequence[Control]:
        arrived = [*self._arrived, *self._host.controls()]
        self._arrived.clear()
        return arrived

    async def changed(self) -> None:
        while not self._arrived:
            await asyncio.sleep(POLL_S)
            self._arrived += self._host.controls()

    async def save(self, calls: Sequence[ToolCall]) -> None:
        await save_files(self._host, calls)
