"""The host: what it gives a turn, and what a person may say while one runs."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from denizen.events import RunEvent
from denizen.messages import ToolCall


class Answer(msgspec.Struct, frozen=True):
    """A person's answer to a question: to `call_id`, whether it may run, words, and for how long it holds.

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
    `diff` is all that the call would change in files, where that is known beforehand.
    """

    call_id: str
    question: str
    tool_name: str = ""
    args: dict[str, Any] = {}
    quotation: bool = False
    diff: str = ""


class Steer(msgspec.Struct, frozen=True):
    """Say something to the agent while it works; heard before its next model call.

    What comes with an `id` that the session has taken in before isn't said again.
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
    """What a host gives a turn."""

    def emit(self, event: RunEvent) -> None:
        """Something happened."""

    def controls(self) -> Sequence[Control]:
        """What the person did since the last look."""

    async def ask(self, request: Ask) -> Answer | Parked:
        """Ask the person."""


@runtime_checkable
class SavingHost(Protocol):
    """A host in which the person may have typed text into files that isn't saved yet: an editor."""

    async def save(self, calls: Sequence[ToolCall]) -> None:
        """Save the files that the calls name, before any of them is previewed or runs."""


async def save_files(io: TurnIO, calls: Sequence[ToolCall]) -> None:
    """Have the host save what the person typed into files that the calls name."""
    if isinstance(io, SavingHost):
        await io.save(calls)
