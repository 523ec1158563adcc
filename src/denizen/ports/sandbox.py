"""The sandbox: where commands run."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec


class Sandboxed(msgspec.Struct, frozen=True):
    """A command ready to start: its arguments and its whole environment.

    `notice` is what the user and the model should know about where it runs; `bash` says it once a session.
    `held` are the places in the workspace that it can't change, though it may change others.
    `afterwards` is called when it is over, and returns what to add to its output.
    """

    argv: Sequence[str]
    environ: Mapping[str, str]
    notice: str = ""
    held: Sequence[str] = ()
    afterwards: Callable[[], str] | None = None


class Sandbox(Protocol):
    """Where commands run. `promises` says what it holds, in a sentence; `confines` is False if it holds nothing."""

    @property
    def name(self) -> str: ...

    @property
    def promises(self) -> str: ...

    @property
    def confines(self) -> bool: ...

    def wrap(
        self, argv: Sequence[str], *, workspace: Path, network: bool = False, read_only: bool = False
    ) -> Sandboxed:
        """The command that runs `argv` inside, with `workspace` writable.

        With `read_only` it writes nothing, and reads nothing but programs and the workspace; only a sandbox that
        confines is asked for that.
        """
